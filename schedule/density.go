package schedule

import (
	"cmp"
	"math"
	"slices"
)

// Sample is one measurement of an energy density at the noise level Sigma = √g.
type Sample struct {
	Sigma  float64
	F      float64 // E|P(flow + ε)|²/(g(c+g))
	Stderr float64 // standard error of F; 0 if unknown
}

// ResidualSample returns the sample of the energy density for a measured mean squared residual E|P(flow + ε)|² and its
// standard error:
//
//	F = residual/(g (c + g)),  g = σ².
func ResidualSample(sigma, residual, stderr, c float64) Sample {
	g := sigma * sigma
	w := 1 / (g * (c + g))
	return Sample{Sigma: sigma, F: w * residual, Stderr: w * stderr}
}

// Density is the energy density F(g) of one subspace through samples: ln F is linear in ln g between them. Beyond them
// F follows its limits for any data of finite variance, 1/g below and 1/g³ above. A Density is immutable.
type Density struct {
	samples []Sample
	logg    []float64 // logarithms of the samples' variances
	logf    []float64 // and of their values
}

// NewDensity returns the density through at least two samples, in any order. Noise levels must be positive, finite and
// distinct, F positive and finite, and standard errors finite and not negative; otherwise NewDensity returns an *Error
// whose Row is the index of the sample.
func NewDensity(samples []Sample) (*Density, error) {
	for i, s := range samples {
		switch {
		case !(s.Sigma > 0) || math.IsInf(s.Sigma, 1):
			return nil, failf(i, "sigma must be positive and finite, got %v", s.Sigma)
		case !(s.F > 0) || math.IsInf(s.F, 1):
			return nil, failf(i, "the energy density must be positive and finite, got %v at sigma %v", s.F, s.Sigma)
		case !(s.Stderr >= 0) || math.IsInf(s.Stderr, 1):
			return nil, failf(i, "the standard error must be finite and not negative, got %v at sigma %v", s.Stderr, s.Sigma)
		}
	}
	if len(samples) < 2 {
		return nil, failf(-1, "an energy density must have at least two samples, got %d", len(samples))
	}
	d := &Density{samples: slices.Clone(samples)}
	slices.SortFunc(d.samples, func(a, b Sample) int { return cmp.Compare(a.Sigma, b.Sigma) })
	for i, s := range d.samples {
		if i > 0 && s.Sigma == d.samples[i-1].Sigma {
			return nil, failf(-1, "sigma must be distinct, got %v twice; merge the two", s.Sigma)
		}
		d.logg = append(d.logg, 2*math.Log(s.Sigma))
		d.logf = append(d.logf, math.Log(s.F))
	}
	return d, nil
}

// The slopes d ln F/d ln g beyond the samples. As g → 0 the residual tends to the dimension and F ~ 1/(c g). As g → ∞
// it falls as 1/g and F ~ 1/g³.
const (
	slopeBelow = -1
	slopeAbove = -3
)

// piece returns the power law that holds just above the variance e^l: its exponent p, ln F there, and the ln g where it
// ends.
func (d *Density) piece(l float64) (p, logf, end float64) {
	n := len(d.logg)
	k, found := slices.BinarySearch(d.logg, l) // the first sample at or above l
	if found {
		k++
	}
	switch k {
	case 0:
		return slopeBelow, d.logf[0] + slopeBelow*(l-d.logg[0]), d.logg[0]
	case n:
		return slopeAbove, d.logf[n-1] + slopeAbove*(l-d.logg[n-1]), math.Inf(1)
	}
	p = (d.logf[k] - d.logf[k-1]) / (d.logg[k] - d.logg[k-1])
	return p, d.logf[k-1] + p*(l-d.logg[k-1]), d.logg[k]
}

// At returns F(g).
func (d *Density) At(g float64) float64 {
	_, logf, _ := d.piece(math.Log(g))
	return math.Exp(logf)
}

// moment returns ∫ F^α g^β dg between the variances e^from and e^to, in closed form on each piece: with F = F_a
// (g/g_a)^p and q = αp + β + 1,
//
//	∫_{g_a}^{g_b} F^α g^β dg = F_a^α g_a^{β+1} ((g_b/g_a)^q − 1)/q.
func (d *Density) moment(alpha, beta, from, to float64) float64 {
	var sum float64
	for l := from; l < to; {
		p, logf, end := d.piece(l)
		width := math.Min(end, to) - l
		ratio, z := 1.0, (alpha*p+beta+1)*width
		if z != 0 {
			ratio = math.Expm1(z) / z
		}
		sum += math.Exp(alpha*logf+(beta+1)*l) * width * ratio
		l += width
		if end <= to {
			l = end
		}
	}
	return sum
}

// length returns ∫(g²F)^{1/(order+1)} d ln g between the variances e^from and e^to, which is ∫√F dg for order 1.
func (d *Density) length(order int, from, to float64) float64 {
	alpha := 1 / float64(order+1)
	return d.moment(alpha, 2*alpha-1, from, to)
}

// travel returns the logarithm of the variance whose length from e^from is given.
func (d *Density) travel(order int, from, length float64) float64 {
	alpha := 1 / float64(order+1)
	for l := from; ; {
		p, logf, end := d.piece(l)
		pieceLength := d.length(order, l, end)
		if math.IsInf(end, 1) || pieceLength >= length {
			// length = (g_a²F_a)^α (e^{qΔ} − 1)/q, solved for Δ.
			q, unit := alpha*p+2*alpha, length/math.Exp(alpha*logf+2*alpha*l)
			if q == 0 {
				return l + unit
			}
			return l + math.Log1p(q*unit)/q
		}
		length -= pieceLength
		l = end
	}
}

// shifted returns d with ln F of sample i raised by h.
func (d *Density) shifted(i int, h float64) *Density {
	out := *d
	out.logf = slices.Clone(d.logf)
	out.logf[i] += h
	return &out
}

// WithEnergy returns the schedule with energy densities f[row][subspace], each a function of the variance of its own
// subspace. It returns an *Error unless f has a density for every path.
func (s *Schedule) WithEnergy(f [][]*Density) (*Schedule, error) {
	if len(f) != s.Rows() {
		return nil, failf(-1, "there must be energy densities for the %d rows of the schedule, got %d", s.Rows(), len(f))
	}
	c := *s
	c.energy = nil
	for r, row := range f {
		if len(row) != s.J() || slices.Contains(row, nil) {
			return nil, failf(-1, "there must be energy densities for the %d subspaces of the schedule, got %d in %s", s.J(),
				len(row), s.rowName(r))
		}
		c.energy = append(c.energy, slices.Clone(row))
	}
	return &c, nil
}

// Energy returns the densities [row][subspace], or nil if there are none.
func (s *Schedule) Energy() [][]*Density {
	var out [][]*Density
	for _, row := range s.energy {
		out = append(out, slices.Clone(row))
	}
	return out
}

// LeastEnergy returns the Bound of one subspace between the variances g0 and gT, for residuals E|P(flow + ε)|² measured
// at increasing noise levels sigma. Errors are those of NewDensity.
func LeastEnergy(sigma, residual []float64, c, g0, gT float64) (float64, error) {
	samples := make([]Sample, len(sigma))
	for i, s := range sigma {
		samples[i] = ResidualSample(s, residual[i], 0, c)
	}
	d, err := NewDensity(samples)
	if err != nil {
		return 0, err
	}
	bound, _ := Bound([]*Density{d}, g0, gT)
	return bound, nil
}

// Report has the energies of a geodesic. They are E = T²·(mean loss): the energy of the path with time rescaled to [0,
// 1].
type Report struct {
	Bound        float64 // (∫√F dg)², the least energy of any schedule
	BoundStderr  float64
	Energy       float64 // energy of the path, whose knots are finite in number
	EnergyStderr float64
}

// Add adds the energies of another subspace, whose errors are independent.
func (r *Report) Add(o Report) {
	r.Bound, r.BoundStderr = r.Bound+o.Bound, math.Hypot(r.BoundStderr, o.BoundStderr)
	r.Energy, r.EnergyStderr = r.Energy+o.Energy, math.Hypot(r.EnergyStderr, o.EnergyStderr)
}

// Geodesic returns the path of least energy for a measured density, J = 1, and its report. The energy of a path,
//
//	E = T ∫ ġ² F(g) dt ≥ (∫ √F dg)²,
//
// is that of a curve in the metric F dg², so the best path moves at constant speed: ġ √F = const. This is order 1.
// Order p, a heuristic for solvers of that order, minimises
//
//	∫ (d ln g/dt)^{p+1} g²F dt:  (d ln g/dt) (g²F)^{1/(p+1)} = const.
//
// The length ∫(g²F)^{1/(p+1)} d ln g is inverted at K = knots uniform times, and ln g is linear between them. That is
// why Report.Energy exceeds Report.Bound in order 1.
//
// It returns an *Error unless order ≥ 1, 2 ≤ knots ≤ 65536 and 0 < g0 < T. Errors of NewDensity name the sample.
func Geodesic(samples []Sample, order int, T, g0 float64, knots int) (*Path, Report, error) {
	if err := checkRange(knots, T, g0); err != nil {
		return nil, Report{}, err
	}
	if order < 1 {
		return nil, Report{}, failf(-1, "order must be positive, got %d", order)
	}
	d, err := NewDensity(samples)
	if err != nil {
		return nil, Report{}, err
	}
	low := math.Log(g0)
	total := d.length(order, low, math.Log(T))
	g := make([]float64, knots)
	for k := range g {
		g[k] = math.Exp(d.travel(order, low, total*float64(k)/float64(knots-1)))
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

// Energy returns the energy of a row of paths and its standard error, given one density per subspace:
//
//	E = T ∫ Σ_j ġ_j² F_j dt = T²·(mean trajectory loss).
//
// On an interval of slope s, ġ² dt = s g dg, so the integral is closed. Energy panics if the lengths differ.
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

// Bound returns the least energy of any paths between the variances g0 and gT, and its standard error:
//
//	Σ_j (∫√F_j dg)².
//
// For J > 1 it holds as far as each F_j depends on its own g_j alone. Compared with the bound for J = 1 it predicts
// what a basis can gain.
func Bound(f []*Density, g0, gT float64) (bound, stderr float64) {
	return propagate(f, func(_ int, d *Density) float64 {
		l := d.length(1, math.Log(g0), math.Log(gT))
		return l * l
	})
}

// propagate returns Σ_j value(j, f_j) and, to first order, its standard error for independent samples,
//
//	√Σ (∂value/∂F_i · stderr_i)²,
//
// with central differences in ln F_i.
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

// Gain returns the energies of EDM's schedule and of s under the densities of s, as means over its rows; nil if s has
// none.
func (s *Schedule) Gain() (before, after *Estimate, err error) {
	if s.energy == nil {
		return nil, nil, nil
	}
	edm, err := EDM(s.T(), s.At(0, 0).G0())
	if err != nil {
		return nil, nil, err
	}
	before, after = &Estimate{}, &Estimate{}
	n := float64(s.Rows())
	add := func(e *Estimate, paths []*Path, f []*Density) {
		energy, stderr := Energy(paths, f)
		e.Value += energy / n
		e.Stderr = math.Hypot(e.Stderr, stderr/n)
	}
	for row, f := range s.energy {
		add(before, slices.Repeat([]*Path{edm.At(0, 0)}, s.J()), f)
		add(after, s.paths[row], f)
	}
	return before, after, nil
}
