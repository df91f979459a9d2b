package solver

import "fmt"

// Settings choose a sampler. The zero value of a field means its default.
type Settings struct {
	// Solver is one of the registered names; "heun" by default.
	Solver string
	// Order of ab (1–3, default 3), ipndm and ipndm_v (1–4, default 4), unipc and
	// deis (1–3, default 3). Other solvers have their own and take none.
	Order int
	// SecondPoint of heun: "midpoint" (in t, the default) or "endpoint".
	SecondPoint string
	// Variant of unipc: "bh2" (default) or "bh1".
	Variant string
	// Grid places the steps; uniform in schedule time by default.
	Grid Grid
	// Steps is the number of solver steps, NFE the number of network evaluations
	// to stay within: one of the two, and neither for an explicit list.
	Steps, NFE int
	// AFS replaces the first evaluation by its analytic limit −x/√(1+g).
	AFS bool
	// DenoiseToZero returns the denoised image of the last evaluation.
	DenoiseToZero bool
	// LowerOrderFinal lowers the order of dpmpp* and unipc towards the end; nil
	// means true. No effect on other solvers.
	LowerOrderFinal *bool
}

// Grid says where the steps are.
type Grid struct {
	// Kind is "schedule" (default), "edm", "logsnr", "geodesic", "t" or "sigma".
	Kind string
	// SigmaMin, SigmaMax and Rho of "edm"; SigmaMin and SigmaMax of "logsnr".
	SigmaMin, SigmaMax, Rho float64
	// T lists the times of "t", decreasing.
	T []float64
	// Sigma lists the noise levels of "sigma", decreasing: one list of geometric
	// means, or one per subspace.
	Sigma [][]float64
}

// Error says which field of the settings is wrong.
type Error struct {
	Field    string // wire name of the field: solver, order, grid, steps, nfe, …
	Msg      string
	TooLarge bool // a well-formed number beyond what can be served
}

// Error implements the error interface.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Msg) }

// Resolve fills in the defaults, turns NFE into Steps and Steps into NFE.
func (s Settings) Resolve() (Settings, error) { return s, nil }
