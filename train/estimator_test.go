package train_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
)

// falseAlarm is the probability that a sound estimator fails any of the statistical rows.
const falseAlarm = 1e-4

// exact bounds the relative difference of what must agree sample by sample: finite differences of the fourth order in
// float64 are good for 1e-9.
const exact = 1e-6

// comparison is one with finite differences.
type comparison struct {
	name string
	// means counts the means that are compared: the deviation is then that of the worst, in its own standard errors. 0 is
	// a comparison sample by sample, by the relative rms difference.
	means            int
	deviation, bound float64
}

// ok is false for NaN.
func (c comparison) ok() bool { return c.deviation <= c.bound }

// subject is an estimator to be checked.
type subject struct {
	name    string
	cfg     kernels.TrainerConfig
	optimal bool // unbiased for data of the mixture alone
}

func subjects() []subject {
	of := func(mode kernels.Mode, probe string, probes int) kernels.TrainerConfig {
		return kernels.TrainerConfig{Mode: mode, Estimate: true, Probe: probe, Probes: probes}
	}
	return []subject{
		{name: "backprop", cfg: of(kernels.Backprop, "", 1)},
		{name: "full, rademacher probe", cfg: of(kernels.Full, kernels.Rademacher, 1)},
		{name: "full, sphere probe", cfg: of(kernels.Full, kernels.Sphere, 1)},
		{name: "full, gaussian probe", cfg: of(kernels.Full, kernels.Gaussian, 1)},
		{name: "full, 4 rademacher probes", cfg: of(kernels.Full, kernels.Rademacher, 4)},
		{name: "explicit, at the optimum", cfg: of(kernels.Explicit, "", 1), optimal: true},
	}
}

// measured is what the device has computed.
type measured struct {
	terms []*kernels.Terms     // by subject
	truth map[bool][][]float64 // d_θ of every sample's loss, by whether the flow is optimal
}

func (l *laboratory) measure(ctx context.Context) (m measured, err error) {
	differences, err := l.differences(ctx)
	if err != nil {
		return m, err
	}
	v := l.levels(point)
	backprop, err := l.step(ctx, subjects()[0].cfg, v, true)
	if err != nil {
		return m, err
	}
	m.truth = map[bool][][]float64{
		false: differences, true: l.chained(backprop.Terms.Parts(v.omega, v.g, v.gdot, weightC, 1)),
	}
	for _, s := range subjects() {
		out, err := l.step(ctx, s.cfg, v, s.optimal)
		if err != nil {
			return m, err
		}
		m.terms = append(m.terms, out.Terms)
	}
	return m, nil
}

// judge compares every mode of the estimator with the truth. spoil, if there is one, makes each estimator wrong first.
//
// The flow is that of a mixture of two Gaussians, exact for every g. The data are stretched and shifted, so that the
// flow is not optimal for them and every term counts; except for the mode explicit, which is unbiased at the optimum
// only.
//
//   - backprop must agree with finite differences sample by sample; it is then the truth at
//     the optimum;
//   - full does so in the mean over the probes, explicit in that over data and noise:
//     each entry of d_θ within z standard errors;
//   - the trace of every law of probes must have the right mean, E zzᵀ = I: with an exact
//     flow, backprop tells what it is, sample by sample.
//
// z follows from the false-alarm probability by Bonferroni's inequality for all means of all rows together.
func (l *laboratory) judge(m measured, spoil func(parts []kernels.Part, g, gdot []float64)) []comparison {
	v := l.levels(point)
	var rows []comparison
	var backprop []kernels.Part
	for i, s := range subjects() {
		parts := m.terms[i].Parts(v.omega, v.g, v.gdot, weightC, 1)
		if spoil != nil {
			for k := range parts {
				parts[k].A = slices.Clone(parts[k].A)
			}
			spoil(parts, v.g, v.gdot)
		}
		got, want := l.chained(parts), m.truth[s.optimal]
		if s.cfg.Mode == kernels.Backprop {
			backprop = parts
			rows = append(rows, comparison{name: s.name, deviation: distance(got, want), bound: exact})
			continue
		}
		rows = append(rows, comparison{name: s.name, means: parameters, deviation: score(got, want)})
		if s.cfg.Mode == kernels.Full {
			trace := score(traces(parts, backprop), nil)
			rows = append(rows, comparison{name: s.name + ": trace", means: 1, deviation: trace})
		}
	}
	means := 0
	for _, row := range rows {
		means += row.means
	}
	for i := range rows {
		if rows[i].means > 0 {
			rows[i].bound = normalBound(falseAlarm / float64(means))
		}
	}
	return rows
}

// traces returns per sample how far the implicit trace I is from its mean over the probes, Σ_j (I_j − M_j) w_j. With an
// exact flow full and backprop are equal in that mean, so M_j is what full's other terms leave of backprop. The weight
// w_j = M_j/(M_j² + E_j²), E_j the explicit term, makes the deviations relative; it does not depend on the probe.
func traces(full, backprop []kernels.Part) [][]float64 {
	rows := make([][]float64, len(full[0].A)/subspaces)
	for i := range full[0].A {
		explicit := full[1].A[i]
		mean := backprop[1].A[i] - explicit - full[3].A[i] - full[4].A[i]
		if i%subspaces == 0 {
			rows[i/subspaces] = []float64{0}
		}
		rows[i/subspaces][0] += (full[2].A[i] - mean) * mean / (mean*mean + explicit*explicit)
	}
	return rows
}

// score returns the largest |mean(a − b)| over the entries, in units of its standard error over the samples. A nil b
// stands for zeros.
func score(a, b [][]float64) float64 {
	var worst float64
	n := float64(len(a))
	for k := range a[0] {
		var sum, square float64
		for i := range a {
			d := a[i][k]
			if b != nil {
				d -= b[i][k]
			}
			sum += d
			square += d * d
		}
		mean := sum / n
		z := math.Abs(mean) / math.Sqrt((square/n-mean*mean)/(n-1))
		if !(z <= worst) { // NaN sticks
			worst = z
		}
	}
	return worst
}

// distance returns the rms of a − b over that of b.
func distance(a, b [][]float64) float64 {
	var difference, size float64
	for i := range a {
		for k, v := range a[i] {
			d := v - b[i][k]
			difference += d * d
			size += b[i][k] * b[i][k]
		}
	}
	return math.Sqrt(difference / size)
}

// normalBound returns what a normal variable exceeds in size with probability p.
func normalBound(p float64) float64 { return -distuv.UnitNormal.Quantile(p / 2) }

// TestTheEstimatorIsTheGradient: every mode, with every law of probes, against finite differences of the loss; and
// every term left out, scaled, of the wrong sign or the wrong power of g, and a probe whose E zzᵀ is 1.2 I, is found.
func TestTheEstimatorIsTheGradient(t *testing.T) {
	const weight, explicit, implicit1, implicit2, implicit3 = 0, 1, 2, 3, 4
	scaled := func(index int, by func(g, gdot float64) float64) func([]kernels.Part, []float64, []float64) {
		return func(parts []kernels.Part, g, gdot []float64) {
			for _, p := range parts {
				if p.Index != index {
					continue
				}
				for i := range p.A {
					p.A[i] *= by(g[i], gdot[i])
				}
			}
		}
	}
	lab, err := newLaboratory(devicetest.Open(t), 8192)
	if err != nil {
		t.Fatal(err)
	}
	defer lab.model.Close()
	m, err := lab.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range lab.judge(m, nil) {
		t.Logf("%-40s %8.2g (bound %.2g)", row.name, row.deviation, row.bound)
		if !row.ok() {
			t.Errorf("%s deviates by %g, more than %g", row.name, row.deviation, row.bound)
		}
	}
	times := func(x float64) func(g, gdot float64) float64 { return func(_, _ float64) float64 { return x } }
	for name, spoil := range map[string]func([]kernels.Part, []float64, []float64){
		"without the weight by g": scaled(weight, times(0)),
		"without the weight by ġ": func(parts []kernels.Part, _, _ []float64) { clear(parts[0].B) },
		"without explicit":        scaled(explicit, times(0)),
		"without implicit 1":      scaled(implicit1, times(0)),
		"without implicit 2":      scaled(implicit2, times(0)),
		"without implicit 3":      scaled(implicit3, times(0)),
		"explicit's sign":         scaled(explicit, times(-1)),
		"implicit 1's sign":       scaled(implicit1, times(-1)),
		"implicit 2's sign":       scaled(implicit2, times(-1)),
		"implicit 3's sign":       scaled(implicit3, times(-1)),
		"probes too large":        scaled(implicit1, times(1.2)),
		"transport by g^{+1/2}":   scaled(implicit2, func(g, _ float64) float64 { return g }),
		"transport by g^{-1}":     scaled(implicit2, func(g, _ float64) float64 { return 1 / math.Sqrt(g) }),
		"implicit 3 by g^{-1/2}":  scaled(implicit3, func(g, _ float64) float64 { return math.Sqrt(g) }),
		"explicit by g^{+1/2}":    scaled(explicit, func(g, _ float64) float64 { return g }),
		"the weight without c+g":  scaled(weight, func(g, _ float64) float64 { return (1 / g) / (1/g + 1/(weightC+g)) }),
		"subspaces exchanged": func(parts []kernels.Part, _, _ []float64) {
			for _, p := range parts {
				for i := 0; i < len(p.A); i += subspaces {
					p.A[i], p.A[i+1] = p.A[i+1], p.A[i]
				}
			}
		},
	} {
		if !slices.ContainsFunc(lab.judge(m, spoil), func(row comparison) bool { return !row.ok() }) {
			t.Errorf("%s: not found", name)
		}
	}
}
