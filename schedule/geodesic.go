package schedule

import "math"

// Report is what a geodesic knows about itself. Energies are E = T²·(mean loss),
// the energy of the path with time rescaled to [0, 1].
type Report struct {
	Bound        float64 // (∫√F dg)², the least energy of any schedule
	BoundStderr  float64
	Energy       float64 // energy of the path, whose knots are finite in number
	EnergyStderr float64
}

// Add adds the energies of another subspace, with errors of its own.
func (r *Report) Add(o Report) {
	r.Bound, r.BoundStderr = r.Bound+o.Bound, math.Hypot(r.BoundStderr, o.BoundStderr)
	r.Energy, r.EnergyStderr = r.Energy+o.Energy, math.Hypot(r.EnergyStderr, o.EnergyStderr)
}

// Geodesic returns the path of least energy for a measured density, J = 1, without
// any descent. The energy of a path,
//
//	E = T ∫ ġ² F(g) dt ≥ (∫ √F dg)²,
//
// is that of a curve in a metric F dg², so the best path moves at constant speed:
// ġ √F = const. The length ∫√F dg is inverted at K uniform times; between them ln g
// is linear, which is what Report.Energy exceeds Report.Bound by.
//
// ThetaFromPath returns the same path as parameters for an optimiser. An *Error's Row
// is the index of an offending sample.
func Geodesic(samples []Sample, T, g0 float64, knots int) (*Path, Report, error) {
	if err := checkRange(knots, T, g0); err != nil {
		return nil, Report{}, err
	}
	d, err := NewDensity(samples)
	if err != nil {
		return nil, Report{}, err
	}
	low := math.Log(g0)
	total := d.length(low, math.Log(T))
	g := make([]float64, knots)
	for k := range g {
		g[k] = math.Exp(d.travel(low, total*float64(k)/float64(knots-1)))
	}
	g[0], g[knots-1] = g0, T
	p, err := NewPath(uniform(T, knots), g)
	if err != nil {
		return nil, Report{}, failf(-1,
			"the measured density is so uneven that neighbouring knots coincide; use fewer knots or fewer, smoother samples")
	}
	var r Report
	r.Bound, r.BoundStderr = Bound([]*Density{d}, g0, T)
	r.Energy, r.EnergyStderr = Energy([]*Path{p}, []*Density{d})
	return p, r, nil
}

// Energy returns the energy of a row of paths, one density per subspace,
//
//	E = T ∫ Σ_j ġ_j² F_j dt = T²·(mean trajectory loss),
//
// and its standard error. Each F_j is taken as a function of its own g_j. On an
// interval of slope s, ġ² dt = s g dg, so the integral is closed.
func Energy(paths []*Path, f []*Density) (energy, stderr float64) {
	if len(paths) != len(f) {
		panic("schedule: Energy needs one density per path")
	}
	return propagate(f, func(j int, d *Density) float64 {
		p := paths[j]
		var sum float64
		for k := 1; k < len(p.tau); k++ {
			sum += p.slope(k) * d.moment(1, 1, p.logg[k-1], p.logg[k])
		}
		return p.T() * sum
	})
}

// Bound returns the least energy of any paths between the variances g0 and gT,
//
//	Σ_j (∫√F_j dg)²,
//
// and its standard error. For J > 1 it holds as far as each F_j depends on its own
// g_j alone: set beside the bound for J = 1 it predicts what a basis can gain.
func Bound(f []*Density, g0, gT float64) (bound, stderr float64) {
	return propagate(f, func(_ int, d *Density) float64 {
		l := d.length(math.Log(g0), math.Log(gT))
		return l * l
	})
}

// propagate returns Σ_j value(j, f_j) and its standard error to first order, the
// samples being independent: √Σ (∂value/∂F_i · stderr_i)², the derivatives by
// central differences in ln F_i.
func propagate(f []*Density, value func(int, *Density) float64) (sum, stderr float64) {
	const h = 1e-4
	var variance float64
	for j, d := range f {
		sum += value(j, d)
		for i, s := range d.samples {
			if s.Stderr == 0 {
				continue
			}
			slope := (value(j, d.shifted(i, h)) - value(j, d.shifted(i, -h))) / (2 * h)
			e := slope * s.Stderr / s.F
			variance += e * e
		}
	}
	return sum, math.Sqrt(variance)
}
