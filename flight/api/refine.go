package api

// Refine asks that the noise levels of a gaussian schedule be moved to where the solver errs less on a model: where its
// samples come closer to the converged ones from the same latents.
type Refine struct {
	Model      string `json:"model"`
	Latents    int    `json:"latents"`    // default 64
	Iterations int    `json:"iterations"` // at most so many Gauss–Newton steps; default 4
	Seed       uint64 `json:"seed"`       // latent i is drawn from seed + i, and so is its label
}

// What a refinement takes where the request does not say.
const (
	defaultRefineLatents    = 64
	defaultRefineIterations = 4
)

// decodeTree fills in what is left out.
func (r *Refine) decodeTree(path string, v tree) error {
	*r = Refine{Latents: defaultRefineLatents, Iterations: defaultRefineIterations}
	type plain Refine // without this method
	return decode(v, path, (*plain)(r))
}

func (r *Refine) check() error {
	if r == nil {
		return nil
	}
	return first(need("refine.model", r.Model), atLeast("refine.latents", r.Latents, 1), atMost("refine.latents", r.Latents, 4096),
		atLeast("refine.iterations", r.Iterations, 1), atMost("refine.iterations", r.Iterations, 100))
}

// Refined reports what a refinement has gained: ODE errors, the root mean square over all pixels of the difference
// between the solver's samples and the converged ones from the same latents along the same path, before and after.
type Refined struct {
	Model   string `json:"model"`
	Latents int    `json:"latents"`
	// Before and After are errors on the latents of the search; the held ones on as many that it has not seen.
	Before     float64 `json:"before"`
	After      float64 `json:"after"`
	HeldBefore float64 `json:"held_before"`
	HeldAfter  float64 `json:"held_after"`
}
