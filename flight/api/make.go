package api

import "cmp"

// MakeModel makes a Gaussian mixture, whose score is exact, and serves it as a model. Its components are those that the
// request gives, or one for each class of a data set.
type MakeModel struct {
	Name    string `json:"name" name:"new"`                        // name of the new model; required
	Kind    string `json:"kind" oneof:"mixture" default:"mixture"` // kind of the model
	Replace bool   `json:"replace"`                                // replace a model of that name

	// From a data set.

	Dataset string `json:"dataset"` // name of a data set; each class becomes a component
	// covariance of a class: full, or dct, which keeps the channels of each frequency; default dct
	Covariance string  `json:"covariance,omitempty" oneof:"dct full"`
	Floor      float64 `json:"floor" above:"0"` // smallest variance in any direction; default 1e-4

	// From given components. Pixels are in the order of an image [H, W, C].

	Shape       []int         `json:"shape"`       // [H,W,C] of an image; default [1,dimensions,1]
	Weights     []float64     `json:"weights"`     // weights of the components; default equal
	Means       [][]float64   `json:"means"`       // means of the components, in place of a data set: [[...],...]
	Covariances [][][]float64 `json:"covariances"` // covariances of the components: [[[...],...],...]
	Labels      []int         `json:"labels"`      // class of each component; default none
}

// Validate implements Request.
func (r *MakeModel) Validate() error {
	given := r.Shape != nil || r.Weights != nil || r.Means != nil || r.Covariances != nil || r.Labels != nil
	switch {
	case r.Dataset != "" && given:
		return Errorf(BadRequest, "dataset and laws must not both be given").
			WithHint("Leave out dataset, or shape, weights, means, covariances and labels.")
	case r.Dataset != "": // a floor of 0 would need σ far below EDM's 0.002 if images are constant in a direction
		r.Covariance, r.Floor = cmp.Or(r.Covariance, "dct"), cmp.Or(r.Floor, 1e-4)
		return nil
	case r.Covariance != "" || r.Floor != 0:
		return Errorf(BadRequest, "covariance and floor must be left out unless the mixture is made of a data set")
	}
	return r.checkLaws()
}

func (r *MakeModel) checkLaws() error {
	n := len(r.Means)
	if n == 0 {
		return Errorf(BadRequest,
			"means is missing").WithHint("Give dataset, or weights, means and covariances with one entry per component.")
	}
	d := len(r.Means[0])
	if r.Weights == nil {
		for range n {
			r.Weights = append(r.Weights, 1)
		}
	}
	if r.Shape == nil {
		r.Shape = []int{1, d, 1}
	}
	switch {
	case len(r.Weights) != n || len(r.Covariances) != n || r.Labels != nil && len(r.Labels) != n:
		return Errorf(BadRequest,
			"means, covariances, weights and labels must have one entry per component, got %d, %d, %d and %d (labels may be "+
				"left out)",
			n, len(r.Covariances), len(r.Weights), len(r.Labels))
	case len(r.Shape) != 3 || min(r.Shape[0], r.Shape[1], r.Shape[2]) < 1 ||
		max(r.Shape[0], r.Shape[1], r.Shape[2]) > 1<<12:
		return Errorf(BadRequest, "shape must be [H, W, C], each at least 1, got %v", r.Shape)
	case r.Shape[0]*r.Shape[1]*r.Shape[2] != d:
		return Errorf(BadRequest, "shape must have the %d values of the means, got %v, which has %d", d, r.Shape,
			r.Shape[0]*r.Shape[1]*r.Shape[2])
	}
	for i := range n {
		if len(r.Means[i]) != d || len(r.Covariances[i]) != d {
			return Errorf(BadRequest,
				"means[%d] and covariances[%d] must have %d values and rows as the first component, got %d and %d", i, i, d,
				len(r.Means[i]), len(r.Covariances[i]))
		}
		for k, row := range r.Covariances[i] {
			if len(row) != d {
				return Errorf(BadRequest, "covariances[%d][%d] must have %d entries, got %d", i, k, d, len(row))
			}
		}
	}
	return nil
}

// MakeDataset draws a data set from a mixture. Its images may leave [−1, 1].
type MakeDataset struct {
	Name    string `json:"name" name:"new"` // name of the new data set; required
	Model   string `json:"model"`           // name of the mixture; required
	N       int    `json:"n" min:"1"`       // number of images; required
	Seed    uint64 `json:"seed"`            // seed of the first image; default 0
	Replace bool   `json:"replace"`         // replace a data set of that name
}

// MakeBasis makes a basis and stores it: the leading principal components of a data set (pca) or of each class
// (pca_per_class), or the coarse part of the Haar wavelet transform of the images' size (haar).
type MakeBasis struct {
	Name    string `json:"name" name:"new"` // name of the new basis; required
	Kind    string `json:"kind"`            // kind of the basis: pca, pca_per_class or haar; required
	Dataset string `json:"dataset"`         // name of the data set; required
	Model   string `json:"model,omitempty"` // name of a model whose normalization is applied to the data
	// dimensions of P_1 per channel; default a quarter of the pixels
	K int `json:"k,omitempty" given:"1"`
	// for pca_per_class: classes that share components, such as [[0,6,8],[1,7]]
	Clusters [][]int `json:"clusters,omitempty"`
	Replace  bool    `json:"replace"` // replace a basis of that name
}
