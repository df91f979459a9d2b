package solver

import "github.com/anisoflight/anisoflight/schedule"

// Stage is one evaluation of the network and the combination that follows it.
type Stage struct {
	G     []float64   // [J] variances at which the network is evaluated
	Time  float64     // schedule time of the evaluation
	Alpha []float64   // [J] factor of the running x
	Beta  [][]float64 // [J][history] factors of the evaluations, newest first; Beta[j][0] multiplies the one just made
	Step  int         // solver step (from 0) that this stage ends, −1 for an inner stage
}

// Plan is a sampler as numbers: x = Σ_j Init_j P_j ξ for a unit normal ξ, then the
// stages in order.
type Plan struct {
	Init    []float64 // [J]
	Stages  []Stage
	NFE     int       // evaluations of the network, len(Stages)
	History int       // longest Beta
	Data    bool      // the history holds denoised images D = x + Σ_j √g_j P_j flow instead of flows
	T       []float64 // times of the solver's steps, first to last
}

// New returns the plan of one row of a schedule. Settings need not be resolved.
func New(s Settings, sch *schedule.Schedule, row int) (*Plan, error) { return nil, nil }
