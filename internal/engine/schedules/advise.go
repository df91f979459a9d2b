package schedules

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

const (
	// surveyPoints are the noise levels of a survey.
	surveyPoints = 48
	// surveyError is what a measured part of the loss may err by: 1 − r below it is none.
	surveyError = 0.02
	// leastGain is the part of the energy that subspaces must save to be worth it: less has not improved samples.
	leastGain = 0.1
	// EDM's settings of training (arXiv:2206.00364, table 1).
	edmSigmaData, edmPMean, edmPStd = 0.5, -1.2, 1.2
)

// adviser is one request for advice.
type adviser struct {
	maker    *Maker
	req      api.Advise
	model    *catalog.Model // nil for none
	known    schedule.Range // noise levels of the model
	data     *data.Dataset
	law      *gaussian.Spectrum
	scale    passes.Scale // with T as the model knows it
	progress progress
	out      api.Advice
}

// Advise measures a data set, and a model on it if the request names one, and recommends what follows.
func (k *Maker) Advise(ctx context.Context, req api.Advise, report func(api.Meta)) (_ api.Advice, err error) {
	a := &adviser{maker: k, req: req, progress: progress{report: api.Sparsely(report)}}
	if req.Model != "" {
		if a.model, err = k.Catalog.Model(req.Model); err != nil {
			return a.out, err
		}
		a.known = a.model.Shape.Range
	}
	if a.data, err = k.Catalog.SeenBy(req.Model, req.Dataset); err != nil {
		return a.out, err
	}
	if err := checkMeasurable(req.Dataset, a.data); err != nil {
		return a.out, err
	}
	a.progress.begin(100, 0)
	if a.law, a.out.Images, err = passes.MeasureSpectrum(ctx, a.data, a.progress.at); err != nil {
		return a.out, err
	}
	a.scale = passes.ScaleOf(a.law)
	if !(a.scale.T > 2*schedule.DefaultSigmaMin*schedule.DefaultSigmaMin) {
		return a.out, api.Errorf(api.BadRequest, "The images of %q must differ by more than σ = %g, got a variance of %.3g",
			req.Dataset, schedule.DefaultSigmaMin, a.law.Variance()).WithHint(`Store floats with scale "measured".`)
	}
	a.scales()
	a.frequencies()
	a.progress.begin(800, 0)
	survey, err := a.survey(ctx)
	if err != nil {
		return a.out, err
	}
	levels, residual := survey.Residual()
	a.training(levels, residual)
	if err := a.subspaces(ctx, survey); err != nil {
		return a.out, err
	}
	a.progress.begin(100, 0)
	return a.out, a.samplers(ctx, levels)
}

// item adds a recommendation for people.
func (a *adviser) item(name, value, because string, args ...any) {
	a.out.Items = append(a.out.Items, api.AdvisedItem{Name: name, Value: value, Because: fmt.Sprintf(because, args...)})
}

// scales recommends what follows from the variances of the data's Gaussian alone.
func (a *adviser) scales() {
	var mean float64
	for _, d := range a.law.Directions {
		mean += d.Mean * d.Mean
	}
	n := float64(len(a.law.Directions))
	a.out.SigmaData = math.Sqrt(a.law.Variance() / n)
	a.item("sigma_data", short(a.out.SigmaData), "The deviation of the values of %d images from the mean image, whose own "+
		"have the root mean square %s.", a.out.Images, short(math.Sqrt(mean/n)))
	a.out.SigmaMin = schedule.DefaultSigmaMin
	because := fmt.Sprintf("8 bits round with the deviation %.2g: below it there is nothing to learn.", 2/(255*math.Sqrt(12)))
	if a.data.IsFloat() {
		a.out.SigmaMin *= a.out.SigmaData / edmSigmaData
		because = "EDM's share of sigma_data, as floats do not say how they were rounded."
	}
	a.item("sigma_min", short(a.out.SigmaMin), "%s", because)
	a.out.SigmaMax = math.Sqrt(a.scale.T)
	a.item("sigma_max", short(a.out.SigmaMax),
		"From noise of this level alone the exact flow misses a thousandth of the Gaussian's variance.")
	because = "sigma_max squared."
	if within := a.scale.Within(a.known); a.model != nil && within != a.scale {
		a.scale, because = within, "sigma_max squared, within the noise levels of the model "+a.req.Model+"."
	}
	a.out.T, a.out.C = a.scale.T, a.scale.C
	a.item("T", short(a.out.T), "%s", because)
	a.item("c", short(a.out.C), "The largest variance of a direction, %s of all: with less, the path hurries through "+
		"its noise level.", percent(a.out.C/a.law.Variance()))
}

// frequencies averages the variances over rings of frequencies.
func (a *adviser) frequencies() {
	size := max(a.law.H, a.law.W)
	sum, count := make([]float64, 2*size), make([]float64, 2*size)
	for i, d := range a.law.Directions {
		u, v := i/a.law.C/a.law.W, i/a.law.C%a.law.W
		ring := int(math.Hypot(float64(u*size)/float64(a.law.H), float64(v*size)/float64(a.law.W)) + 0.5)
		sum[ring], count[ring] = sum[ring]+d.Variance, count[ring]+1
	}
	for ring, n := range count {
		if n > 0 {
			a.out.Frequency = append(a.out.Frequency, float64(ring)/float64(2*size))
			a.out.Variance = append(a.out.Variance, sum[ring]/n)
		}
	}
}

// survey measures the residual of the model, or computes that of the data's Gaussian.
func (a *adviser) survey(ctx context.Context) (survey *passes.Survey, err error) {
	set := passes.PredictSettings{T: a.scale.T, C: a.scale.C, G0: a.known.G0(), Points: surveyPoints, Seed: a.req.Seed}
	if a.model == nil || len(a.law.Directions) == a.law.C { // single pixels have no subspaces
		return passes.GaussianSurvey(a.law, set), nil
	}
	set.Samples = max(2, a.req.Samples/max(1, a.data.Classes()))
	network, err := a.model.IsotropicNetwork()
	if err != nil {
		return nil, err
	}
	if err := a.model.Hold(); err != nil {
		return nil, err
	}
	defer a.model.Release()
	nobody := func(api.Event) error { return nil } // progress is that of the whole request
	err = a.maker.Queue.Run(ctx, nobody, func(ctx context.Context, report func(done, total int)) (err error) {
		set.Progress = func(done, total int) {
			report(done, total) // which gives way to other requests
			a.progress.at(done, total)
		}
		survey, err = passes.MeasureSurvey(ctx, network, a.model.Weights(), a.data, set)
		return err
	})
	return survey, err
}

// training recommends where to train, by the loss that can be reduced: as measured, and above as on the Gaussian.
func (a *adviser) training(sigma, residual []float64) {
	step, by := sigma[1]/sigma[0], "Gaussian's best denoiser"
	for s := sigma[0]; s < 100*a.out.SigmaMax; s *= step { // above, nothing is seen of the data
		a.out.Sigma = append(a.out.Sigma, s)
		a.out.Ratio = append(a.out.Ratio, a.law.LossRatio(s, a.law.Residual(s)))
	}
	ratio := a.out.Ratio
	if a.model != nil {
		by = "model " + a.req.Model
		for i, s := range sigma {
			a.out.ModelRatio = append(a.out.ModelRatio, a.law.LossRatio(s, residual[i]))
		}
		ratio = slices.Concat(a.out.ModelRatio, ratio[len(sigma):])
		for i := range sigma {
			if ratio[i] > 1-surveyError {
				ratio[i] = 1
			}
		}
	}
	because := fmt.Sprintf("ln σ, weighted by the part of the loss that the %s takes off", by)
	var ok bool
	if a.out.PMean, a.out.PStd, ok = gaussian.TrainingLevels(a.out.Sigma, ratio); !ok {
		a.out.PMean, a.out.PStd = edmPMean+math.Log(a.out.SigmaData/edmSigmaData), edmPStd
		because = "EDM's, moved to this sigma_data: white data leave nothing to learn"
	}
	a.item("P_mean", short(a.out.PMean), "Mean of %s (EDM: %g).", because, edmPMean)
	a.item("P_std", short(a.out.PStd), "Deviation of %s (EDM: %g).", because, edmPStd)
}

// subspaces recommends a family of schedules.
func (a *adviser) subspaces(ctx context.Context, survey *passes.Survey) error {
	all, err := survey.Predictions(ctx)
	if err != nil {
		return err
	}
	p := all[0]
	s := api.AdvisedSubspaces{
		Worth: p.Gain > leastGain && p.Gain > 2*p.GainStderr, Basis: p.Basis, K: p.K, Cuts: p.Cuts, PerClass: p.PerClass,
		Gain: p.Gain, Stderr: p.GainStderr,
	}
	a.out.Subspaces = s
	name, value, on := fmt.Sprintf("%s, k = %d", s.Basis, s.K), "none", "data's Gaussian"
	if s.Cuts != nil {
		name = fmt.Sprintf("%s cut at %v", s.Basis, s.Cuts)
	}
	if s.PerClass {
		name += ", per class"
	}
	if s.Worth {
		value = name
	}
	if a.model != nil {
		on = "model " + a.req.Model
	}
	a.item("subspaces", value, "The best split, %s, saves %.1f ± %.1f %% of the energy on the %s; samples were not better "+
		"with 6 %%, and it is worth a try from %g %% on.", name, 100*s.Gain, 100*s.Stderr, on, 100*leastGain)
	return nil
}

// advised is a sampler along a path, and its distance to the data's Gaussian where a network's errors disturb it.
type advised struct {
	api.AdvisedSampler
	grid      string
	path      *schedule.Schedule
	disturbed float64
}

// samplers recommends a sampler for each number of evaluations: the one that comes closest to the data's Gaussian. The
// noise levels are EDM's from the highest and from √T, and the geodesic of the Gaussian.
func (a *adviser) samplers(ctx context.Context, levels []float64) error {
	g0 := a.known.G0()
	edm, err := catalog.EDMFrom(a.known.T(), g0)
	if err != nil {
		return err
	}
	lower, err := catalog.EDMFrom(a.scale.T, g0)
	if err != nil {
		return err
	}
	var density []schedule.Sample
	for _, s := range levels {
		density = append(density, schedule.ResidualSample(s, a.law.Residual(s), 0, a.scale.C))
	}
	geodesic, _, err := schedule.Geodesic(density, a.scale.T, g0, schedule.DefaultKnots)
	if err != nil {
		return err
	}
	var tries []advised
	for _, name := range solver.NamesOf(func(m solver.Method) bool { return !m.ByCoordinate }) {
		for _, start := range []string{api.StartStandard, api.StartMatched} {
			add := func(levels, grid string, s *schedule.Schedule) {
				what := api.AdvisedSampler{Solver: name, Levels: levels, SigmaMax: math.Sqrt(s.T()), Start: start}
				tries = append(tries, advised{what, grid, s, 0})
			}
			add(solver.GridEDM, solver.GridEDM, edm)
			add(solver.GridPolynomial, solver.GridPolynomial, edm)
			add(solver.GridPolynomial, solver.GridPolynomial, lower)
			add("geodesic", solver.GridSchedule, schedule.Isotropic(geodesic))
		}
	}
	laws := map[string]*gaussian.Spectrum{api.StartStandard: a.law, api.StartMatched: a.law.Matched()}
	for i, nfe := range a.req.NFE {
		var all []advised
		for _, s := range tries {
			grid := solver.Grid{Kind: s.grid, SigmaMax: s.SigmaMax}
			plan, err := solver.New(solver.Settings{Solver: s.Solver, NFE: nfe, Grid: grid}, s.path, 0)
			if err != nil {
				continue // the solver cannot be made of so few evaluations
			}
			report, err := laws[s.Start].Bench(basis.None(a.law.H, a.law.W), plan)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			s.W2, s.disturbed = report.W2, report.Disturbed()
			all = append(all, s)
		}
		slices.SortStableFunc(all, func(a, b advised) int { return cmp.Compare(a.disturbed, b.disturbed) })
		first := func(match func(s advised) bool) api.AdvisedSampler {
			return all[slices.IndexFunc(all, match)].AdvisedSampler
		}
		a.sampler(api.AdvisedSamplers{
			NFE: nfe, Best: all[0].AdvisedSampler,
			FromNoise: first(func(s advised) bool { return s.Start == api.StartStandard }),
			EDM: first(func(s advised) bool {
				return s.Solver == "heun" && s.Levels == solver.GridEDM && s.Start == api.StartStandard
			}),
		})
		a.progress.at(i+1, len(a.req.NFE))
	}
	return nil
}

// sampler adds the recommendation for a number of evaluations.
func (a *adviser) sampler(s api.AdvisedSamplers) {
	a.out.Samplers = append(a.out.Samplers, s)
	because := fmt.Sprintf("W2² to the data's Gaussian is %s of the variance; %s has %s, EDM's Heun at σ %s %s.",
		percent(s.Best.W2), describe(s.FromNoise), percent(s.FromNoise.W2), short(s.EDM.SigmaMax), percent(s.EDM.W2))
	if a.model != nil && s.NFE <= 9 {
		because += fmt.Sprintf(" On the model itself: make_schedule(NAME, \"few\", model=%q, dataset=%q, nfe=%d).",
			a.req.Model, a.req.Dataset, s.NFE)
	} else if a.model != nil {
		because += fmt.Sprintf(" On the model itself, for heun: make_schedule(NAME, \"geodesic\", model=%q, dataset=%q).",
			a.req.Model, a.req.Dataset)
	}
	a.item(fmt.Sprintf("%d evaluations", s.NFE), describe(s.Best), "%s", because)
}

// describe says a sampler in words.
func describe(s api.AdvisedSampler) string {
	from := "noise"
	if s.Start == api.StartMatched {
		from = "matched start"
	}
	return fmt.Sprintf("%s, %s, %s at σ %s", s.Solver, s.Levels, from, short(s.SigmaMax))
}

// short returns a number with three digits, and all of those before the point.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func percent(part float64) string { return short(100*part) + " %" }
