package api

import (
	"encoding/json"
	"slices"
)

// PutDataset uploads a data set.
//
// Rows in: image fixed_shape_tensor uint8, or float32 in [−1, 1], or with mean or scale in units of its own; label
// int32 or another type of integers, optional. The column index of a data set that was read is passed over, and its
// metadata normalization stands for mean and scale if the request has neither.
type PutDataset struct {
	Name string `json:"name" name:"new"` // name of the data set; required
	// number of rows that will be sent, if it is known: an upload cut short is then refused
	Rows    int64 `json:"rows,omitempty" min:"0"`
	Replace bool  `json:"replace"`         // replace a data set of that name
	Shape   []int `json:"shape,omitempty"` // of an image that comes as a fixed_size_list
	// a number, one for each channel, or "measured", the data's own; a network sees (x − mean)/scale; default 0 if scale
	// is given
	Mean Channels `json:"mean,omitzero"`
	// likewise; measured is twice each channel's standard deviation; default 1 if mean is given
	Scale Channels `json:"scale,omitzero"`
}

// maxSide bounds the sizes of shape, so that their product is a number.
const maxSide = 1 << 20

// Validate implements Request.
func (r *PutDataset) Validate() error {
	if r.Shape != nil && (len(r.Shape) != 3 || slices.Min(r.Shape) < 1 || slices.Max(r.Shape) > maxSide) {
		return Errorf(BadRequest, "shape must be [H, W, C] or [C, H, W] with sizes from 1 to %d, got %v", maxSide, r.Shape)
	}
	return nil
}

// PutSchedule uploads a schedule of the user's own.
//
// Rows in: label int32 (−1 shared), subspace int32, t, g float64. Per label and subspace t rises strictly from 0 and g
// > 0 rises strictly; all paths end at one T and one g(T). Subspace 0 is P_1.
type PutSchedule struct {
	Name string `json:"name" name:"new"` // name of the schedule; required
	// none, dct, haar, a stored basis, or pca and pca_per_class, the model's own
	Basis   string `json:"basis" default:"none"`
	K       int    `json:"k,omitempty" given:"1"`  // dimensions of P_1 per channel; absent for none
	Cuts    []int  `json:"cuts,omitempty"`         // nested bands of dct, instead of k: J = len(cuts) + 1
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
// Rows in: label int32 (−1 shared), vector fixed_shape_tensor float64 with dim_names ["H","W"]: the orthonormal rows of
// P_1, per label.
type PutBasis struct {
	Name    string `json:"name" name:"new"`        // name of the basis; required
	Rows    int64  `json:"rows,omitempty" min:"0"` // as of PutDataset
	Replace bool   `json:"replace"`                // replace a basis of that name
}

// PartBytes is how many bytes of a model folder's files a row holds, of PutModel and of Model.
const PartBytes = 1 << 16

// PutModel uploads a model folder: its two files one after the other, config.json and model.safetensors, cut into rows
// of PartBytes bytes, the last filled up with anything.
//
// Rows in: bytes fixed_shape_tensor uint8 [PartBytes].
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

// Measured asks for the data's own numbers where Channels may be declared.
const Measured = "measured"

// Channels are numbers of an image's channels: in JSON one for all, a list with one for each, or "measured", those that
// the data have. The zero value is left out.
type Channels struct {
	Values   []float64
	Measured bool
}

// Given reports whether the request says them.
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
