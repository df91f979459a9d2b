package api

import "encoding/json"

// PlanRef names a stored plan, or is a plan. Its JSON is a name, or the JSON of a [Plan].
type PlanRef struct {
	Name string
	File json.RawMessage
}

// Given reports whether the request has a plan.
func (r PlanRef) Given() bool { return r.Name != "" || r.File != nil }

// IsZero reports whether it is left out of JSON.
func (r PlanRef) IsZero() bool { return !r.Given() }

// decodeStrictly takes a name or an object, whose fields are checked when the plan is used.
func (r *PlanRef) decodeStrictly(at place, v rawValue) error {
	*r = PlanRef{}
	switch v.Kind() {
	case '"':
		err := decodeJSON(v, at, &r.Name)
		if err == nil && r.Name == "" {
			return Errorf(BadRequest, "%s must not be empty", at)
		}
		return err
	case '{':
		r.File = json.RawMessage(v)
		return nil
	}
	return wrongJSON(at, "a name or a plan", v)
}

// MarshalJSON writes the form that decodes to r.
func (r PlanRef) MarshalJSON() ([]byte, error) {
	if r.File != nil {
		return r.File, nil
	}
	return json.Marshal(r.Name)
}

// MakePlan searches the sampler that is best for a model in few evaluations, and returns its [Plan]. It measures plans
// on the model: solvers on several noise levels, and coefficients that are fitted, or learned, on its trajectories.
//
// With a data set, samples are compared with its images by Fréchet distances, and may start from their normal law.
// Without one, they are compared with converged samples from the same latents by squared error, and may start from
// noise of a fitted deviation. The best of each family, which are plain solvers from each start, fitted and learned
// coefficients, are then compared on samples held back. The simplest is kept unless the gain of another is clear,
// larger than its standard error.
//
// If the plan cannot be stored after the search, because its name was taken meanwhile or the disk is full, the reply
// has it all the same, and its notes say why.
type MakePlan struct {
	Name    string `json:"name,omitempty"`                             // name to store the plan by; default not stored
	Replace bool   `json:"replace"`                                    // replace a plan of that name
	Model   string `json:"model"`                                      // name of the model to sample; required
	Dataset string `json:"dataset,omitempty"`                          // data set to compare samples with; default none
	Samples int    `json:"samples" default:"512" min:"64" max:"65536"` // with dataset: samples of each, and held back
	Search
	Guided
}

// Search has the settings of a search for a plan, wherever its network is.
type Search struct {
	NFE int `json:"nfe" min:"1" max:"32"` // largest number of network evaluations; required
	// list of solvers to try; default ipndm, dpmpp2m, unipc, deis
	Solvers []string `json:"solvers,omitempty" oneof:"solvers"`
	// largest number of evaluations; default what the samples of each need, or without images as many as the network
	// makes in a minute, at least 4000
	Budget int `json:"budget,omitempty" min:"0"`
	// in place of budget, about the seconds that the evaluations may take
	Seconds float64 `json:"seconds,omitempty" min:"0"`
	// learn the guidance of each evaluation, too, which the client of OfferNetwork must obey; default of MakePlan true
	LearnGuidance *bool `json:"learn_guidance,omitempty"`
	// learn levels and coefficients through the network, too; default if the budget suffices, and true raises the default
	// budget so that it does
	Learn *bool  `json:"learn,omitempty"`
	Seed  uint64 `json:"seed"` // seed of the samples; default 0
}

// searchSolvers are the default solvers of a search.
var searchSolvers = []string{"ipndm", "dpmpp2m", "unipc", "deis"}

// check completes and checks the settings.
func (r *Search) check() error {
	if r.Solvers == nil {
		r.Solvers = searchSolvers
	}
	if r.Budget > 0 && r.Seconds > 0 {
		return Errorf(BadRequest, "budget and seconds must not both be given").WithHint("Give one of them.")
	}
	if len(r.Solvers) == 0 || len(r.Solvers) > len(Solvers) {
		return Errorf(BadRequest, "solvers must name 1 to %d solvers, got %d", len(Solvers), len(r.Solvers))
	}
	return nil
}

// Validate implements Request.
func (r *MakePlan) Validate() error {
	if r.Name != "" {
		if err := CheckName("name", r.Name); err != nil {
			return err
		}
	}
	if err := r.Search.check(); err != nil {
		return err
	}
	return r.Guided.check()
}

// EndSearch ends a search of MakePlan, which then returns the best plan so far. Its progress names it.
type EndSearch struct {
	Search string `json:"search"` // the search; required
}

// ImportPlan stores a plan.
type ImportPlan struct {
	Name    string          `json:"name" name:"new"` // name of the new plan; required
	Plan    json.RawMessage `json:"plan"`            // the JSON of a plan; required
	Replace bool            `json:"replace"`         // replace a plan of that name
}

// PlanName is the request of DeletePlan.
type PlanName struct {
	Plan string `json:"plan"` // name of the plan; required
}

// PlanInfo describes a stored plan.
type PlanInfo struct {
	Name       string     `json:"name"`
	NFE        int        `json:"nfe"`
	Steps      int        `json:"steps"`
	Solver     string     `json:"solver"`
	Labels     []int32    `json:"labels,omitempty"` // of a plan of several classes
	Start      *StartInfo `json:"start,omitempty"`
	Provenance any        `json:"provenance,omitempty"`
	// Summary compares the plan with a rival, in a sentence; absent if it was not compared.
	Summary string `json:"summary,omitempty"`
	Integrity
}

// MaxPlan is the largest size of a plan: evaluations times subspaces or parts, over all its classes.
const MaxPlan = 1 << 14

// PlanSampler asks for a sampler as numbers. It takes every Sample request; fields that do not shape the sampler have
// no effect. The reply is a [Plan].
//
// With Plan alone it reads a stored plan back, whole.
//
// A plan depends on the noise levels that the network was trained on. They are those of the model, or without a model
// SigmaMin to SigmaMax, or without these those of the model that the schedule was made for. A sampler that depends on
// the class needs Label, or Labels for one plan of several classes.
type PlanSampler struct {
	Sample
	Label *int32 `json:"label,omitempty"` // class of the plan, −1 for none

	SigmaMin float64 `json:"sigma_min,omitempty"` // lowest noise level of the network, in place of model
	SigmaMax float64 `json:"sigma_max,omitempty"` // highest noise level of the network, in place of model
}

// Validate implements Request.
func (r *PlanSampler) Validate() error {
	switch {
	case r.Plan.Given() && (r.Model != "" || r.Label != nil || r.Labels != nil || r.SigmaMin != 0 || r.SigmaMax != 0):
		return Errorf(BadRequest, "model, labels, sigma_min and sigma_max must be left out with plan, which is read as it is")
	case r.Model == "" && !r.Schedule.Given() && !r.Plan.Given():
		return Errorf(BadRequest, "model and schedule are both missing").WithHint("Give one of them.")
	}
	switch lo, hi := r.SigmaMin, r.SigmaMax; {
	case r.Label != nil && r.Labels != nil:
		return Errorf(BadRequest, "label and labels must not both be given").WithHint("Give one of them.")
	case lo == 0 && hi == 0:
	case r.Model != "":
		return Errorf(BadRequest, "sigma_min and sigma_max must be left out with a model, which has its own")
	case !(0 < lo && lo < hi && hi <= 1e6):
		return Errorf(BadRequest, "sigma_min and sigma_max must be positive and increase, up to 1e6, got %g and %g", lo, hi)
	}
	return r.Sample.Validate()
}

// PlanFormat and PlanVersion begin every plan.
const (
	PlanFormat  = "anisoflight-plan"
	PlanVersion = 1
)

// The outputs of the network that a plan combines.
const (
	PredictsFlow     = "flow"     // E = flow(x, g), about −ε
	PredictsDenoised = "denoised" // E = D = x + Σ_j √g_j P_j flow
)

// Plan is a sampler as numbers. It begins at x = Σ_j Init_j P_j ξ for a unit normal ξ, unless Start is set. Then every
// stage does
//
//	x ← x + Σ_j Noise_j P_j ξ′              if there is Noise, for a fresh unit normal ξ′
//	E_0 = flow or denoised image of x at G  and the older E_i become E_{i+1}
//	x ← Σ_j P_j (Alpha_j x + Σ_i Beta_ji E_i)
type Plan struct {
	Format   string `json:"format"`
	Version  int    `json:"version"`
	Schedule string `json:"schedule"`
	Model    string `json:"model,omitempty"` // model whose noise levels the plan uses
	Label    int32  `json:"label"`
	Family   Family `json:"family"` // has the basis of the P_j
	Solver   string `json:"solver"`
	Steps    int    `json:"steps"`
	NFE      int    `json:"nfe"` // evaluations of the network: len(Stages)
	Predicts string `json:"predicts"`
	History  int    `json:"history"` // number of evaluations to keep
	// Start describes the law that sampling starts from, x = μ + (Σ + Σ_j Init_j² P_j)^½ ξ. It is absent for noise.
	Start *StartInfo `json:"start,omitempty"`
	// Begin is the step of a whole plan at which this one begins, from an image with noise: a tail, which a client
	// follows. A server refuses it.
	Begin *int `json:"begin,omitempty"`
	// States is true if the history holds each evaluation followed by its input x: E_0, its x, E_1, its x, …
	States bool `json:"states,omitempty"`
	PlanNumbers
	// Classes has the numbers by class, in a plan of several classes. PlanNumbers is then empty.
	Classes []PlanClass `json:"classes,omitempty"`
	// Provenance is the schedule.Provenance of the schedule, if it has one.
	Provenance any `json:"provenance,omitempty"`
	// Info has further facts, such as the [Few] of a search.
	Info any `json:"info,omitempty"`
	// Law and Vectors are the files start.safetensors and basis.safetensors in base64, if the plan has a start, and if no
	// formula gives the basis of its family. A file of a plan may have them next to it instead.
	Law     []byte `json:"law,omitempty"`
	Vectors []byte `json:"vectors,omitempty"`
	// Notes are sentences about defaults that shape the plan, about what gives poor samples, and about why a new one is
	// not stored.
	Notes []string `json:"notes,omitempty"`
}

// PlanNumbers are the numbers of a plan that may differ by class.
type PlanNumbers struct {
	T    []float64 `json:"t,omitempty"`    // [Steps + 1] times of the steps, the start first
	Init []float64 `json:"init,omitempty"` // [J]
	// Coordinates replace the family's subspaces in the combinations: Alpha and Beta have an entry for each part. Init and
	// G are always by subspace.
	Coordinates *PlanCoordinates `json:"coordinates,omitempty"`
	Stages      []PlanStage      `json:"stages,omitempty"`
	// Tails[k−1] replaces the combinations of a sampler that begins at step k = 1 … Steps − 1 with an empty history: of
	// the leading stages, as far as they differ from Stages. Absent if no step uses an evaluation of an earlier one.
	Tails [][]PlanTail `json:"tails,omitempty"`
}

// PlanTail is the combination of one stage in a sampler that begins at a later step.
type PlanTail struct {
	Alpha []float64   `json:"alpha"`
	Beta  [][]float64 `json:"beta"`
}

// PlanClass has the numbers that some classes share.
type PlanClass struct {
	Labels []int32 `json:"labels"`
	PlanNumbers
}

// PlanCoordinates divide an image into parts j = b·C + k: band b of the frequencies (u, v) of its orthonormal DCT-II,
// along axis k of the channels. docs/method.md has the formula of the bands, which have equal width in ln ρ,
// ρ = √((u/H)² + (v/W)²).
type PlanCoordinates struct {
	Height   int `json:"height"`
	Width    int `json:"width"`
	Channels int `json:"channels"`
	// N in the formula; absent: each frequency is a band, b = u·W + v
	Bands int `json:"bands,omitempty"`
	// [B·C·C] for B bands: axis k of band b in the channels; absent: the channels are the axes
	Axes []float64 `json:"axes,omitempty"`
}

// PlanStage is one evaluation of the network and the combination after it.
type PlanStage struct {
	G     []float64   `json:"g"`               // [J] noise variances
	Time  float64     `json:"t"`               // time of the schedule
	Alpha []float64   `json:"alpha"`           // [J]
	Beta  [][]float64 `json:"beta"`            // [J][up to History], the newest first
	Step  int         `json:"step"`            // the step, from 0, that ends here; −1 if none does
	Noise []float64   `json:"noise,omitempty"` // [J]; absent for none
	// factor r of what guidance adds to this evaluation, which has the scale 1 + r (guidance − 1); absent: 1
	Guidance *float64 `json:"guidance,omitempty"`
}

// Family is whether each class has its own paths, and the basis that splits the image space.
type Family struct {
	PerClass bool   `json:"per_class"`
	Basis    string `json:"basis"`
	K        int    `json:"k,omitempty"`
	Cuts     []int  `json:"cuts,omitempty"`
}
