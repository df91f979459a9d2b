package api

// MakeBasis makes a basis from a data set and stores it: the leading principal components of all its images (pca), of
// each class's own (pca_per_class), the coarse part of the Haar wavelet transform of its image size (haar), or another
// kind that the server knows.
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
	return first(CheckName("name", r.Name), need("kind", r.Kind), need("dataset", r.Dataset), err)
}
