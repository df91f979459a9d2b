package solver

import "github.com/anisoflight/anisoflight/schedule/local"

// MaxSteps bounds a plan's length.
const MaxSteps = 100_000

// Settings choose a sampler. The zero value of a field means its default.
type Settings struct {
	// Solver is one of Names; "heun" by default.
	Solver string
	// Order of ab (1–3, default 3), ipndm and ipndm_v (1–4, default 4), deis (1–3, default 3),
	// unipc (1–3), dpmpp3m and dpmpp3m_taylor (2–3; of all three default 3, and 2 below 13
	// evaluations), and local (1–3, default 2). Other solvers have their own and take none.
	Order int
	// SecondPoint of heun: Midpoint (in t, the default) or Endpoint. No effect on
	// other solvers.
	SecondPoint string
	// Variant of unipc: BH2 (default) or BH1. No effect on other solvers.
	Variant string
	// Grid places the steps; uniform in schedule time by default.
	Grid Grid
	// Steps is the number of solver steps; NFE the number of network evaluations
	// to stay within, by as many steps as fit. One of the two, and neither for an
	// explicit list.
	Steps, NFE int
	// AFS replaces the first evaluation by its limit for large noise, −x/√(1 + g).
	AFS bool
	// DenoiseToZero returns the denoised image of the last evaluation.
	DenoiseToZero bool
	// LowerOrderFinal lowers the order of dpmpp*, unipc and local towards the end; nil
	// means true. No effect on other solvers.
	LowerOrderFinal *bool
	// Warmup is the first step of ab, ipndm, ipndm_v, dpmpp* and deis: WarmupEuler (default) or
	// WarmupHeun. No effect on the number of evaluations.
	Warmup string
	// Corrector of local: each step but the last is corrected by the evaluation that
	// follows it, as in unipc, which has one of its own. No effect on other solvers.
	Corrector bool
	// Statistics are those of the denoiser, which local needs, and StatisticsRow the row of
	// them that a plan is for; Fitted are the coefficients of fitted. No effect on others.
	Statistics    *local.Statistics
	StatisticsRow int
	Fitted        *Fitted
	// SChurn, SMin, SMax and SNoise are EDM's S_churn, S_min, S_max and S_noise: how
	// much noise euler and heun replace while they sample, between which noise levels,
	// and its standard deviation. By default 0, which is no churn, 0, no bound, and 1.
	SChurn, SMin, SMax, SNoise float64
}
