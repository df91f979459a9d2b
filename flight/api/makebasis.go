package api

import "slices"

// BasisKinds lists the bases that MakeBasis makes.
var BasisKinds = []string{"pca", "pca_per_class", "haar"}

// MakeBasis makes a basis from a data set and stores it: the leading principal components of all its images (pca), of each
// class's own (pca_per_class), or the coarse part of the Haar wavelet transform of its image size (haar).
type MakeBasis struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	Dataset  string  `json:"dataset"`
	K        int     `json:"k,omitempty"`        // dimensions of P_1 per channel; default H·W/4
	Clusters [][]int `json:"clusters,omitempty"` // of pca_per_class: classes that share components; others stand alone
	Replace  bool    `json:"replace"`
}

// SetDefaults implements Request.
func (r *MakeBasis) SetDefaults() { *r = MakeBasis{K: unset} }

// Validate implements Request.
func (r *MakeBasis) Validate() error {
	var err error
	taken("k", &r.K, &err)
	if r.Clusters != nil && r.Kind != "pca_per_class" && slices.Contains(BasisKinds, r.Kind) {
		err = first(err, Errorf(BadRequest, "clusters must be left out for kind %s; only pca_per_class takes it", r.Kind))
	}
	return first(CheckName("name", r.Name), need("kind", r.Kind), oneOf("kind", r.Kind, BasisKinds...), need("dataset", r.Dataset), err)
}
