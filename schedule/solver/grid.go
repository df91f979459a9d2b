package solver

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/schedule"
)

// The kinds of grid.
const (
	GridSchedule   = "schedule"   // uniform in schedule time, from T to 0
	GridEDM        = "edm"        // EDM's noise levels, one for each step, then t = 0
	GridPolynomial = "polynomial" // EDM's rule with a level more, and the end at σ_min
	GridLogSNR     = "logsnr"     // noise levels uniform in ln σ, then t = 0
	GridT          = "t"          // an explicit list of times
	GridSigma      = "sigma"      // explicit noise levels
	GridTable      = "table"      // published noise levels, interpolated, then t = 0
)

// endTolerance is the relative distance from an end of the schedule within which a time or noise level counts as the
// end.
const endTolerance = 1e-6

// Grid says where the steps are. All noise levels are geometric means over the subspaces.
type Grid struct {
	// Kind is one of the constants above; GridSchedule by default.
	Kind string
	// SigmaMin and SigmaMax bound the noise levels of GridEDM, GridPolynomial and GridLogSNR. EDM's own 0.002 and 80,
	// which are the defaults, are replaced by the ends of a schedule that does not reach them. Other levels outside the
	// schedule are errors.
	SigmaMin, SigmaMax float64
	// Rho is the exponent of GridEDM and GridPolynomial, 7 by default.
	Rho float64
	// T lists the times of GridT, strictly decreasing.
	T []float64
	// Sigma lists the noise levels of GridSigma, strictly decreasing; the last may be 0.
	Sigma []float64
	// Table of GridTable is one of Tables.
	Table string
}

// resolve sets the default kind and checks names. Lists and levels are checked against the schedule later.
func (g Grid) resolve() (Grid, error) {
	g.Kind = cmp.Or(g.Kind, GridSchedule)
	switch g.Kind {
	case GridSchedule, GridEDM, GridPolynomial, GridLogSNR, GridT, GridSigma:
		return g, nil
	case GridTable:
		if tables[g.Table] == nil {
			return g, failf("grid", "no table is called %q; there are %s", g.Table, strings.Join(Tables(), ", "))
		}
		return g, nil
	}
	return g, failf("grid", "no grid is called %q; there are %s, %s, %s, %s, tables and lists of t or sigma", g.Kind,
		GridSchedule, GridEDM, GridPolynomial, GridLogSNR)
}

// list returns the nodes of an explicit grid, nil for others.
func (g Grid) list() []float64 {
	switch g.Kind {
	case GridT:
		return g.T
	case GridSigma:
		return g.Sigma
	}
	return nil
}

// times returns the nodes of n steps on a row of a schedule, decreasing.
func (g Grid) times(sch *schedule.Schedule, row, n int) ([]float64, error) {
	switch g.Kind {
	case GridEDM, GridLogSNR:
		sigma, err := g.levels(sch, row, n)
		if err != nil {
			return nil, err
		}
		return timesOf(append(sigma, 0), sch, row)
	case GridPolynomial:
		sigma, err := g.levels(sch, row, n+1)
		if err != nil {
			return nil, err
		}
		return timesOf(sigma, sch, row)
	case GridTable:
		return timesOf(tableLevels(tables[g.Table], n), sch, row)
	case GridT:
		return clampTimes(g.T, sch.T())
	case GridSigma:
		return timesOf(g.Sigma, sch, row)
	}
	t := make([]float64, n+1)
	for i := range t {
		t[i] = sch.T() * float64(n-i) / float64(n)
	}
	t[0] = sch.T()
	return t, nil
}

// levels returns n noise levels from σ_max down to σ_min: schedule.EDMLevels, or its limit ρ → ∞, uniform in ln σ.
func (g Grid) levels(sch *schedule.Schedule, row, n int) ([]float64, error) {
	lo, hi := g.SigmaMin, g.SigmaMax
	if lo == 0 || lo == schedule.DefaultSigmaMin {
		lo = max(schedule.DefaultSigmaMin, sch.Sigma(row, 0))
	}
	if hi == 0 || hi == schedule.DefaultSigmaMax {
		hi = min(schedule.DefaultSigmaMax, sch.Sigma(row, sch.T()))
	}
	if lo >= hi {
		return nil, failf("grid", "sigma_min %v is not below sigma_max %v on this schedule", lo, hi)
	}
	if g.Kind != GridLogSNR {
		return schedule.EDMLevels(hi, lo, cmp.Or(g.Rho, schedule.EDMRho), n), nil
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = hi * math.Pow(lo/hi, float64(i)/float64(max(n-1, 1)))
	}
	return out, nil
}

// timesOf returns the times of geometric-mean noise levels on a row; a last 0 is t = 0.
func timesOf(sigma []float64, sch *schedule.Schedule, row int) ([]float64, error) {
	lo, hi := sch.Sigma(row, 0), sch.Sigma(row, sch.T())
	t := make([]float64, len(sigma))
	for i, s := range sigma {
		switch {
		case s == 0 && i == len(sigma)-1:
			continue
		case math.Abs(s-hi) <= endTolerance*hi:
			s = hi
		case math.Abs(s-lo) <= endTolerance*lo:
			s = lo
		case !(s >= lo && s <= hi):
			return nil, failf("grid", "noise level %.9g lies outside the schedule's %.9g … %.9g", s, lo, hi)
		}
		t[i] = sch.TimeOf(row, s)
	}
	return t, nil
}

// clampTimes returns the times with those close to an end of [0, T] moved there.
func clampTimes(list []float64, T float64) ([]float64, error) {
	t := slices.Clone(list)
	for i, v := range t {
		switch {
		case math.Abs(v-T) <= endTolerance*T:
			t[i] = T
		case v < 0 && v >= -endTolerance*T:
			t[i] = 0
		case !(v >= 0 && v <= T):
			return nil, failf("grid", "t[%d] is %v, outside the schedule's 0 … %v", i, v, T)
		}
	}
	return t, nil
}

// tables are published noise levels of ten steps, by name: those of Align Your Steps (Sabour, Fidler and Kreis,
// arXiv:2404.14507) for Stable Diffusion 1.5, XL and Video.
var tables = map[string][]float64{
	"ays-sd15": {
		14.6146412293, 6.4745760956, 3.8636745985, 2.6946151520, 1.8841921177, 1.3943805092,
		0.9642583904, 0.6523686016, 0.3977456272, 0.1515232662, 0.0291671582,
	},
	"ays-sdxl": {
		14.6146412293, 6.3184485287, 3.7681790315, 2.1811480769, 1.3405244945, 0.8620721141,
		0.5550693289, 0.3798540708, 0.2332364134, 0.1114188177, 0.0291671582,
	},
	"ays-svd": {700, 54.5, 15.886, 7.977, 4.248, 1.789, 0.981, 0.403, 0.173, 0.034, 0.002},
}

// Tables returns the names of the tables of GridTable.
func Tables() []string { return slices.Sorted(maps.Keys(tables)) }

// tableLevels returns the noise levels of n steps: n uniform in the table's index, log-linear between its entries as
// published, and 0.
func tableLevels(table []float64, n int) []float64 {
	out := make([]float64, n+1)
	last := len(table) - 1
	for i := range n {
		at := float64(i*last) / float64(n)
		k := min(int(at), last-1)
		part := at - float64(k)
		out[i] = math.Exp((1-part)*math.Log(table[k]) + part*math.Log(table[k+1]))
	}
	return out
}
