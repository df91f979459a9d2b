package schedulecheck

import (
	"context"
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Settings say how sharp the check is. The zero value means the defaults.
type Settings struct {
	Samples    int     // of (t, x_0, ε, z) per row; default 8192
	Seed       uint64  // of all of them
	FalseAlarm float64 // probability that a sound estimator fails any of the statistical rows; default 1e-4
}

// Check returns an error for a setting that cannot be used as it stands, before any default.
func (set Settings) Check() error {
	if set.Samples < 64 || set.Samples > 1<<20 {
		return fmt.Errorf("samples must lie between 64 and %d, got %d", 1<<20, set.Samples)
	}
	if !(set.FalseAlarm > 0 && set.FalseAlarm < 1) {
		return fmt.Errorf("the probability of a false alarm must lie between 0 and 1, got %g", set.FalseAlarm)
	}
	return nil
}

// Row is one comparison with finite differences.
type Row struct {
	Name string `json:"name"`
	// Statistical rows compare means: Deviation is that of the worst entry of d_θ, in
	// standard errors of the estimate's own. Others compare sample by sample: it is the
	// relative rms difference.
	Statistical bool    `json:"statistical"`
	Deviation   float64 `json:"deviation"`
	Bound       float64 `json:"bound"` // that Deviation must not exceed
	OK          bool    `json:"ok"`
}

// Report is the outcome.
type Report struct {
	Rows       []Row   `json:"rows"`
	Samples    int     `json:"samples"`
	FalseAlarm float64 `json:"false_alarm"`
	OK         bool    `json:"ok"`
}

// exact bounds the relative difference of what must agree sample by sample: finite
// differences of the fourth order in float64 are good for 1e-9.
const exact = 1e-6

// differenced bounds that of the implicit trace by finite differences of the flow,
// whose step is a hundredth of the scale on which it changes.
const differenced = 1e-2

// subject is an estimator to be checked.
type subject struct {
	name    string
	cfg     kernels.TrainerConfig
	optimal bool // unbiased for data of the mixture alone
	sharp   bool // right sample by sample
}

func subjects() []subject {
	of := func(mode kernels.Mode, probe string, probes int) kernels.TrainerConfig {
		return kernels.TrainerConfig{Mode: mode, Estimate: true, Probe: probe, Probes: probes}
	}
	return []subject{
		{name: "backprop", cfg: of(kernels.Backprop, "", 1), sharp: true},
		{name: "full, rademacher probe", cfg: of(kernels.Full, kernels.Rademacher, 1)},
		{name: "full, sphere probe", cfg: of(kernels.Full, kernels.Sphere, 1)},
		{name: "full, gaussian probe", cfg: of(kernels.Full, kernels.Gaussian, 1)},
		{name: "full, 4 rademacher probes", cfg: of(kernels.Full, kernels.Rademacher, 4)},
		{name: "finite-difference, rademacher probe", cfg: of(kernels.FiniteDifference, kernels.Rademacher, 1)},
		{name: "explicit, at the optimum", cfg: of(kernels.Explicit, "", 1), optimal: true},
	}
}

// Run checks every mode of the estimator.
//
// The flow is that of a mixture of two Gaussians, exact for every g. The data are
// stretched and shifted, so that the flow is not optimal for them and every term
// counts; but for the mode explicit, which is unbiased at the optimum only.
//
//   - backprop must agree with finite differences sample by sample;
//   - full and finite-difference do so in the mean over the probes, explicit in that
//     over data and noise: each entry of d_θ within z standard errors;
//   - the trace of every law of probes must have the right mean, E zzᵀ = I: with an exact
//     flow, backprop tells what it is, sample by sample;
//   - finite-difference must give the trace that full gives with the same probes, up to
//     its step's error.
//
// z follows from the false-alarm probability by Bonferroni's inequality for all means of
// all rows together.
func Run(ctx context.Context, dev *device.Device, set Settings) (*Report, error) {
	if set.Samples == 0 {
		set.Samples = 8192
	}
	if set.FalseAlarm == 0 {
		set.FalseAlarm = 1e-4
	}
	if err := set.Check(); err != nil {
		return nil, err
	}
	lab, err := newLaboratory(dev, set)
	if err != nil {
		return nil, err
	}
	defer lab.close()
	m, err := lab.measure(ctx)
	if err != nil {
		return nil, err
	}
	return lab.judge(m, nil), nil
}

// measured is what the device has computed.
type measured struct {
	terms []*kernels.Terms     // by subject
	truth map[bool][][]float64 // d_θ of every sample's loss, by whether the flow is optimal
}

func (l *laboratory) measure(ctx context.Context) (m measured, err error) {
	m.truth = map[bool][][]float64{}
	for _, optimal := range []bool{false, true} {
		if m.truth[optimal], err = l.differences(ctx, optimal); err != nil {
			return m, err
		}
	}
	for _, s := range subjects() {
		out, err := l.step(ctx, s.cfg, l.levels(start), s.optimal)
		if err != nil {
			return m, err
		}
		m.terms = append(m.terms, out.Terms)
	}
	return m, nil
}

// judge compares. spoil, if there is one, makes each estimator wrong first: that is how
// the tests know that the check finds it.
func (l *laboratory) judge(m measured, spoil func(parts []kernels.Part, g, gdot []float64)) *Report {
	v := l.levels(start)
	report := &Report{Samples: l.set.Samples, FalseAlarm: l.set.FalseAlarm, OK: true}
	tests := 0 // means that are compared
	add := func(name string, deviation, bound float64, means int) {
		report.Rows = append(report.Rows, Row{Name: name, Statistical: means > 0, Deviation: deviation, Bound: bound})
		tests += means
	}
	var backprop, full []kernels.Part
	for i, s := range subjects() {
		parts := m.terms[i].Parts(v.omega, v.g, v.gdot, weightC)
		if spoil != nil {
			for k := range parts {
				parts[k].A = slices.Clone(parts[k].A)
			}
			spoil(parts, v.g, v.gdot)
		}
		got, want := l.chained(parts), m.truth[s.optimal]
		if s.sharp {
			add(s.name, distance(got, want), exact, 0)
			backprop = parts
			continue
		}
		add(s.name, score(got, want), 0, parameters)
		switch s.cfg.Mode {
		case kernels.Full:
			add(s.name+": trace", score(traces(parts, backprop), nil), 0, 1)
			if full == nil {
				full = parts
			}
		case kernels.FiniteDifference:
			add("finite-difference, against full", distance([][]float64{parts[2].A}, [][]float64{full[2].A}), differenced, 0)
		}
	}
	bound := normalBound(l.set.FalseAlarm / float64(tests))
	for i := range report.Rows {
		r := &report.Rows[i]
		if r.Statistical {
			r.Bound = bound
		}
		r.OK = r.Deviation <= r.Bound // NaN is not
		report.OK = report.OK && r.OK
	}
	return report
}

// traces returns per sample how far the implicit trace I is from its mean over the
// probes, Σ_j (I_j − M_j) w_j. With an exact flow full and backprop are equal in that
// mean, so M_j is what full's other terms leave of backprop. The weight
// w_j = M_j/(M_j² + E_j²), E_j the explicit term, makes the deviations relative; it does
// not depend on the probe.
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
