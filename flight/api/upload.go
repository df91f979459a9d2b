package api

import (
	"encoding/json"
	"slices"
)

// PutDataset uploads a data set.
//
// Rows in: image tensor uint8 or float32, optionally label int32. Floats lie in [−1, 1], or are in their own units if
// mean or scale is given. The rows of Dataset can be sent: the column index is ignored, and without mean and scale the
// schema's metadata normalization is used.
type PutDataset struct {
	Name string `json:"name" name:"new"` // name of the data set; required
	// number of rows, if known: an upload with another number is refused
	Rows    int64 `json:"rows,omitempty" min:"0"`
	Replace bool  `json:"replace"`         // replace a data set of that name
	Shape   []int `json:"shape,omitempty"` // [H, W, C] or [C, H, W] of images sent as fixed_size_list
	// a number, a list with one per channel, or "measured"; a network sees (x − mean)/scale; default 0 if scale is given
	Mean Channels `json:"mean,omitzero"`
	// as mean; "measured" is twice the standard deviation of each channel; default 1 if mean is given
	Scale Channels `json:"scale,omitzero"`
}

// maxSide is the largest size in shape, so that products do not overflow.
const maxSide = 1 << 20

// Validate implements Request.
func (r *PutDataset) Validate() error {
	if r.Shape != nil && (len(r.Shape) != 3 || slices.Min(r.Shape) < 1 || slices.Max(r.Shape) > maxSide) {
		return Errorf(BadRequest, "shape must be [H, W, C] or [C, H, W] with sizes from 1 to %d, got %v", maxSide, r.Shape)
	}
	return nil
}

// PutSchedule uploads a schedule.
//
// Rows in: label int32 (−1: shared), subspace int32, t, g float64. For each label and subspace, t increases strictly
// from 0 and g > 0 increases strictly. All paths end at the same T and g(T). Subspace 0 is P_1.
type PutSchedule struct {
	Name string `json:"name" name:"new"` // name of the schedule; required
	// none, dct, haar, a stored basis, or pca and pca_per_class for the model's own
	Basis   string `json:"basis" default:"none"`
	K       int    `json:"k,omitempty" given:"1"`  // dimensions of P_1 per channel; absent for none
	Cuts    []int  `json:"cuts,omitempty"`         // for dct: nested bands in place of k, J = len(cuts) + 1
	Rows    int64  `json:"rows,omitempty" min:"0"` // as of PutDataset
	Replace bool   `json:"replace"`                // replace a schedule of that name
}

// Validate implements Request.
func (r *PutSchedule) Validate() error {
	switch {
	case r.Basis == "":
		return Errorf(BadRequest, "basis is missing")
	case r.Basis == "none" && r.K != 0:
		return Errorf(BadRequest, "k must be left out for basis none")
	}
	return checkCuts(r.Basis, r.K, r.Cuts)
}

// PutBasis uploads a basis.
//
// Rows in: label int32 (−1: shared), vector tensor float64 with dim_names ["H","W"], the orthonormal rows of P_1.
type PutBasis struct {
	Name    string `json:"name" name:"new"`        // name of the basis; required
	Rows    int64  `json:"rows,omitempty" min:"0"` // as of PutDataset
	Replace bool   `json:"replace"`                // replace a basis of that name
}

// PartBytes is the number of bytes in a row of PutModel and of Model.
const PartBytes = 1 << 16

// PutModel uploads a model folder: config.json, then model.safetensors, cut into rows of PartBytes bytes. The last row
// is padded.
//
// Rows in: bytes tensor uint8 [PartBytes].
type PutModel struct {
	Name         string `json:"name" name:"new"`        // name of the model; required
	ConfigBytes  int64  `json:"config_bytes"`           // size of config.json; required
	WeightsBytes int64  `json:"weights_bytes"`          // size of model.safetensors; required
	Rows         int64  `json:"rows,omitempty" min:"0"` // as of PutDataset
	Replace      bool   `json:"replace"`                // replace a model of that name
}

// Validate implements Request.
func (r *PutModel) Validate() error {
	if r.ConfigBytes < 1 || r.WeightsBytes < 1 {
		return Errorf(BadRequest,
			"config_bytes and weights_bytes must be the sizes of config.json and model.safetensors, got %d and %d",
			r.ConfigBytes, r.WeightsBytes)
	}
	return nil
}

// Measured is the value of Channels for measured numbers.
const Measured = "measured"

// Channels are numbers of an image's channels. Their JSON is one number for all channels, a list with one per channel,
// or "measured". The zero value is left out.
type Channels struct {
	Values   []float64
	Measured bool
}

// Given reports whether the request has them.
func (c Channels) Given() bool { return c.Measured || c.Values != nil }

// IsZero reports whether they are left out of JSON.
func (c Channels) IsZero() bool { return !c.Given() }

// MarshalJSON writes the form that decodes to c.
func (c Channels) MarshalJSON() ([]byte, error) {
	if c.Measured {
		return json.Marshal(Measured)
	}
	return json.Marshal(c.Values)
}

// decodeStrictly reads "measured", a number or a list of numbers.
func (c *Channels) decodeStrictly(at place, v rawValue) error {
	*c = Channels{}
	switch v.Kind() {
	case '"':
		if c.Measured = string(v) == `"`+Measured+`"`; !c.Measured {
			return Errorf(BadRequest, "%s must be a number, a list with one for each channel, or \"measured\", got %s", at,
				describe(v))
		}
		return nil
	case '[':
		if err := decodeJSON(v, at, &c.Values); err != nil {
			return err
		}
		if len(c.Values) == 0 {
			return Errorf(BadRequest, "%s must not be empty", at)
		}
		return nil
	}
	c.Values = make([]float64, 1)
	return decodeJSON(v, at, &c.Values[0])
}
