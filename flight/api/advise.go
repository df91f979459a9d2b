package api

// Advise recommends settings of training, schedules and samplers for a data set, each with the measurement behind it:
// of the data's Gaussian, from one pass over the images, and of a model's residual, from one pass of the network.
type Advise struct {
	Dataset string `json:"dataset"` // name of the data set; required
	// name of a model whose residual is measured; default none, that of the data's Gaussian is computed
	Model string `json:"model,omitempty"`
	// list of evaluations to recommend samplers for, at most 16; default 3,5,9,18
	NFE []int `json:"nfe,omitempty" min:"3" max:"256"`
	// images per noise level that a model is measured with, of all classes together
	Samples int    `json:"samples" default:"256" min:"2" max:"65536"`
	Seed    uint64 `json:"seed"` // of the images and noise that a model is measured with; default 0
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
	Images    int     `json:"images"` // that the Gaussian was measured on, evenly spaced in the data set
	SigmaData float64 `json:"sigma_data"`
	SigmaMin  float64 `json:"sigma_min"`
	SigmaMax  float64 `json:"sigma_max"`
	PMean     float64 `json:"P_mean"`
	PStd      float64 `json:"P_std"`
	T         float64 `json:"T"` // of schedules, and c of their energy
	C         float64 `json:"c"`

	Subspaces AdvisedSubspaces  `json:"subspaces"`
	Samplers  []AdvisedSamplers `json:"samplers"`
	Items     []AdvisedItem     `json:"items"` // all of these for people

	Variance []float64 `json:"variance"` // mean of a direction by DCT frequency max(u, v)
	Sigma    []float64 `json:"sigma"`    // noise levels
	// the part of the loss, from where EDM's preconditioning begins, that the Gaussian's best denoiser leaves there, and
	// that the model leaves at the first of them
	Ratio      []float64 `json:"ratio"`
	ModelRatio []float64 `json:"model_ratio,omitempty"`
}

// AdvisedSubspaces is the family of schedules with the least energy: of those of Predict, or of basis dct on the data's
// Gaussian. It is worth it if its gain over the best isotropic schedule exceeds a tenth and two standard errors.
type AdvisedSubspaces struct {
	Worth    bool    `json:"worth"`
	Basis    string  `json:"basis"`
	K        int     `json:"k,omitempty"`
	Cuts     []int   `json:"cuts,omitempty"`
	PerClass bool    `json:"per_class"`
	Gain     float64 `json:"gain"`
	Stderr   float64 `json:"gain_stderr"`
}

// AdvisedSamplers are those of nfe evaluations from noise: iPNDM-4 on EDM's levels from sigma_max, Heun's method on the
// geodesic of the data's Gaussian, and on EDM's levels.
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

// AdvisedItem is one recommendation, and the measurement behind it.
type AdvisedItem struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Because string `json:"because"`
	// the requests that carry it out, in order, each with its operation as "op"; without a model they begin with training
	// one, named like the data set
	Do []map[string]any `json:"do,omitempty"`
}
