package solver

import "github.com/anisoflight/anisoflight/schedule/local"

// MaxHistory bounds the length of a Beta, whatever the settings.
const MaxHistory = 4

// Stage is one evaluation of the network and the combination that follows it.
type Stage struct {
	G     []float64 // [J] variances at which the network is evaluated
	Time  float64   // schedule time of the evaluation
	Alpha []float64 // [J], or [H·W·C] with Statistics, factor of the running x
	// Beta are, as Alpha, factors of the evaluations by history, newest first; Beta[j][0] multiplies the one just made
	Beta [][]float64
	Step int // solver step, from 0, that this stage ends; −1 for an inner stage
	// [J] standard deviations of fresh noise, x ← x + Σ_j Noise_j P_j ξ, before the evaluation; nil for none
	Noise []float64
}

// Plan is a sampler as numbers: x = Σ_j Init_j P_j ξ for a unit normal ξ, then the
// stages in order.
type Plan struct {
	Init    []float64 // [J], √g_j where the steps start
	Stages  []Stage
	NFE     int  // evaluations of the network: len(Stages)
	History int  // length of the longest Beta
	Data    bool // the history holds denoised images D = x + Σ_j √g_j P_j flow instead of flows
	// States is true where the history holds states as well: E_{2i} is the evaluation i back
	// and E_{2i+1} the x that it was made at.
	States bool
	// Statistics are there where the stages combine in the coordinates of one of their rows,
	// Row, instead of the schedule's subspaces: P_j projects on the coordinate j, of as many
	// as an image has values. Init and G are by subspace all the same.
	Statistics *local.Statistics
	Row        int
	// T lists the times of the steps' ends, the start first; of their geometric-mean noise
	// level where each subspace has nodes of its own.
	T []float64
}
