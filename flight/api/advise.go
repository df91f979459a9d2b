package api

// Advise recommends settings of training, schedules and samplers for a data set, each with the measurement behind it.
// One pass over the images measures the data's Gaussian; one pass of the model measures its residual.
type Advise struct {
	Dataset string `json:"dataset"` // name of the data set; required
	// name of a model whose residual is measured; default none: the residual of the data's Gaussian is computed
	Model string `json:"model,omitempty"`
	// list of at most 16 numbers of evaluations to recommend samplers for; default 3,5,9,18
	NFE []int `json:"nfe,omitempty" min:"3" max:"256"`
	// images per noise level in the measurement of the model, over all classes
	Samples int    `json:"samples" default:"256" min:"2" max:"65536"`
	Seed    uint64 `json:"seed"` // seed of these images and their noise; default 0
}

// Validate implements Request.
func (r *Advise) Validate() error {
	if r.NFE == nil {
		r.NFE = []int{3, 5, 9, 18}
	}
	if n := len(r.NFE); n < 1 || n > 16 {
		return Errorf(BadRequest, "nfe must hold 1 to 16 numbers, got %d", n)
	}
	return nil
}

// Advice is the reply of Advise. Noise levels and variances are in the units that a network sees.
type Advice struct {
	// number of images that the Gaussian was measured on, evenly spaced in the data set
	Images    int     `json:"images"`
	SigmaData float64 `json:"sigma_data"`
	SigmaMin  float64 `json:"sigma_min"`
	SigmaMax  float64 `json:"sigma_max"`
	PMean     float64 `json:"P_mean"`
	PStd      float64 `json:"P_std"`
	T         float64 `json:"T"` // end of schedules
	C         float64 `json:"c"` // c of their energy

	Subspaces AdvisedSubspaces  `json:"subspaces"`
	Samplers  []AdvisedSamplers `json:"samplers"`
	Items     []AdvisedItem     `json:"items"` // the recommendations in words

	Variance []float64 `json:"variance"` // mean variance of a direction, by DCT frequency max(u, v)
	Sigma    []float64 `json:"sigma"`    // noise levels
	// share of the loss that the Gaussian's best denoiser leaves at each noise level, relative to EDM's preconditioning
	// without a network; ModelRatio is that of the model, at the first of the levels
	Ratio      []float64 `json:"ratio"`
	ModelRatio []float64 `json:"model_ratio,omitempty"`
}

// AdvisedSubspaces is the family of schedules with the least energy, among those of Predict or, without a model, those
// of basis dct on the data's Gaussian. Worth is true if its gain over the best isotropic schedule exceeds a tenth and
// two standard errors.
type AdvisedSubspaces struct {
	Worth    bool    `json:"worth"`
	Basis    string  `json:"basis"`
	K        int     `json:"k,omitempty"`
	Cuts     []int   `json:"cuts,omitempty"`
	PerClass bool    `json:"per_class"`
	Gain     float64 `json:"gain"`
	Stderr   float64 `json:"gain_stderr"`
}

// AdvisedSamplers compares samplers of NFE evaluations from noise: iPNDM-4 on EDM's levels from SigmaMax, Heun's method
// on the geodesic of the data's Gaussian, and Heun's method on EDM's levels.
type AdvisedSamplers struct {
	NFE   int            `json:"nfe"`
	IPNDM AdvisedSampler `json:"ipndm"`
	Heun  AdvisedSampler `json:"heun"`
	EDM   AdvisedSampler `json:"edm"`
}

// AdvisedSampler is a sampler and its squared 2-Wasserstein distance to the data's Gaussian, over the variance.
type AdvisedSampler struct {
	Solver   string  `json:"solver"`
	Levels   string  `json:"levels"` // a grid, or the geodesic of the data's Gaussian
	SigmaMax float64 `json:"sigma_max"`
	W2       float64 `json:"w2_squared"`
}

// AdvisedItem is one recommendation with the measurement behind it.
type AdvisedItem struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Because string `json:"because"`
	// requests that carry it out, in order, each with its operation as "op"; without a model the first ones train one,
	// named after the data set
	Do []map[string]any `json:"do,omitempty"`
}
