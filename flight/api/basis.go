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

// Basis reads the vectors of P_1 back: of a stored basis, or of the one that a schedule has.
//
// Rows out, sorted by label: label int32 (−1 shared), vector fixed_shape_tensor float64 with dim_names ["H","W"].
type Basis struct {
	Basis    string      `json:"basis,omitempty"`
	Schedule ScheduleRef `json:"schedule,omitzero"`
}

// SetDefaults implements Request.
func (r *Basis) SetDefaults() { *r = Basis{} }

// Validate implements Request.
func (r *Basis) Validate() error {
	if (r.Basis == "") == !r.Schedule.Given() {
		return Errorf(BadRequest, "basis and schedule must not both be given, nor both be left out")
	}
	return nil
}
