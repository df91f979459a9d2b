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
	by       string         // whose residual it is
	data     *data.Dataset
	law      *gaussian.Spectrum
	scale    passes.Scale // with T as the model knows it
	progress progress
	out      api.Advice
}

// Advise measures a data set, and a model on it if the request names one, and recommends what follows.
func (k *Maker) Advise(ctx context.Context, req api.Advise, report func(api.Meta)) (_ api.Advice, err error) {
	a := &adviser{maker: k, req: req, by: "data's Gaussian", progress: progress{report: api.Sparsely(report)}}
	if req.Model != "" {
		if a.model, err = k.Catalog.Model(req.Model); err != nil {
			return a.out, err
		}
		a.known, a.by = a.model.Shape.Range, "model "+req.Model
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
	bands := max(a.law.H, a.law.W)
	a.out.Variance = make([]float64, bands)
	count, mean, n := make([]float64, bands), 0.0, float64(len(a.law.Directions))
	for i, d := range a.law.Directions {
		band := max(i/a.law.C/a.law.W, i/a.law.C%a.law.W)
		count[band]++
		a.out.Variance[band] += (d.Variance - a.out.Variance[band]) / count[band]
		mean += d.Mean * d.Mean / n
	}
	a.out.SigmaData = math.Sqrt(a.law.Variance() / n)
	a.item("sigma_data", short(a.out.SigmaData), "The deviation of %d images' values from the mean image, whose own have "+
		"the root mean square %s.", a.out.Images, short(math.Sqrt(mean)))
	a.out.SigmaMin = schedule.DefaultSigmaMin
	because := fmt.Sprintf("8 bits round with the deviation %.2g: below it there is nothing to learn.",
		2/(255*math.Sqrt(12)))
	if a.data.IsFloat() {
		a.out.SigmaMin *= a.out.SigmaData / edmSigmaData
		because = "EDM's share of sigma_data, as floats do not say how they were rounded."
	}
	a.item("sigma_min", short(a.out.SigmaMin), "%s", because)
	a.out.SigmaMax = math.Sqrt(a.scale.T)
	a.item("sigma_max", short(a.out.SigmaMax),
		"From noise of this level alone the exact flow misses a thousandth of the Gaussian's variance.")
	because = "sigma_max squared."
	if a.model != nil {
		a.scale = a.scale.Within(a.known)
		because = "sigma_max squared, within the noise levels of the model."
	}
	a.out.T, a.out.C = a.scale.T, a.scale.C
	a.item("T", short(a.out.T), "%s", because)
	a.item("c", short(a.out.C), "The data's variance, summed over an image: with less, the path hurries through the "+
		"noise levels of the leading directions.")
}

// survey measures the residual of the model, or computes that of the data's Gaussian.
func (a *adviser) survey(ctx context.Context) (survey *passes.Survey, err error) {
	set := passes.PredictSettings{T: a.scale.T, C: a.scale.C, G0: a.known.G0(), Points: surveyPoints, Seed: a.req.Seed}
	if a.model == nil || a.law.H*a.law.W == 1 { // single pixels have no subspaces
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
	var ratio []float64
	for s := sigma[0]; s < 100*a.out.SigmaMax; s *= sigma[1] / sigma[0] { // above, nothing is seen of the data
		r := a.law.LossRatio(s, a.law.Residual(s))
		a.out.Sigma, a.out.Ratio = append(a.out.Sigma, s), append(a.out.Ratio, r)
		if i := len(ratio); a.model != nil && i < len(residual) {
			r = a.law.LossRatio(s, residual[i])
			a.out.ModelRatio = append(a.out.ModelRatio, r)
			if r > 1-surveyError {
				r = 1
			}
		}
		ratio = append(ratio, r)
	}
	because := "ln σ, weighted by the part of the loss that the best denoiser of the Gaussian takes off"
	if a.model != nil {
		because = "ln σ, weighted by the part of the loss that the " + a.by + " takes off"
	}
	var ok bool
	if a.out.PMean, a.out.PStd, ok = gaussian.TrainingLevels(a.out.Sigma, ratio); !ok {
		a.out.PMean, a.out.PStd = edmPMean+math.Log(a.out.SigmaData/edmSigmaData), edmPStd
		because = "EDM's, moved to this sigma_data, as white data leave nothing to learn"
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
	a.out.Subspaces = api.AdvisedSubspaces{
		Worth: p.Gain > leastGain && p.Gain > 2*p.GainStderr, Basis: p.Basis, K: p.K, Cuts: p.Cuts, PerClass: p.PerClass,
		Gain: p.Gain, Stderr: p.GainStderr,
	}
	name, value := fmt.Sprintf("%s, k = %d", p.Basis, p.K), "none"
	if p.Cuts != nil {
		name = fmt.Sprintf("%s cut at %v", p.Basis, p.Cuts)
	}
	if p.PerClass {
		name += ", per class"
	}
	if a.out.Subspaces.Worth {
		value = name
	}
	a.item("subspaces", value, "The best split, %s, saves %.1f ± %.1f %% of the energy on the %s; samples were not "+
		"better with 6 %%, and it is worth a try from %g %% on.", name, 100*p.Gain, 100*p.GainStderr, a.by, 100*leastGain)
	return nil
}

// advised is a sampler with its distance to the data's Gaussian where a network's errors disturb it.
type advised struct {
	api.AdvisedSampler
	disturbed float64
}

// samplers recommends a sampler for each number of evaluations: the one that comes closest to the data's Gaussian. The
// noise levels are EDM's from the highest and from √T, and the geodesic of the Gaussian.
func (a *adviser) samplers(ctx context.Context, levels []float64) error {
	g0, density := a.known.G0(), []schedule.Sample{}
	edm, err := catalog.EDMFrom(a.known.T(), g0)
	if err != nil {
		return err
	}
	lower, err := catalog.EDMFrom(a.scale.T, g0)
	if err != nil {
		return err
	}
	for _, s := range levels {
		density = append(density, schedule.ResidualSample(s, a.law.Residual(s), 0, a.scale.C))
	}
	geodesic, _, err := schedule.Geodesic(density, passes.DefaultOrder, a.scale.T, g0, schedule.DefaultKnots)
	if err != nil {
		return err
	}
	paths := []struct {
		name, grid string
		*schedule.Schedule
	}{
		{solver.GridEDM, solver.GridEDM, edm},
		{solver.GridPolynomial, solver.GridPolynomial, edm},
		{solver.GridPolynomial, solver.GridPolynomial, lower},
		{"geodesic", solver.GridSchedule, schedule.Isotropic(geodesic)},
	}
	laws := map[string]*gaussian.Spectrum{api.StartStandard: a.law, api.StartMatched: a.law.Matched()}
	for i, nfe := range a.req.NFE {
		var all []advised
		for _, name := range solver.NamesOf(func(m solver.Method) bool { return !m.ByCoordinate }) {
			for _, path := range paths {
				top := math.Sqrt(path.T())
				set := solver.Settings{Solver: name, NFE: nfe, Grid: solver.Grid{Kind: path.grid, SigmaMax: top}}
				plan, err := solver.New(set, path.Schedule, 0)
				if err != nil {
					continue // there is none of so few evaluations
				}
				for _, start := range []string{api.StartStandard, api.StartMatched} {
					report, err := laws[start].Bench(basis.None(a.law.H, a.law.W), plan)
					if err = cmp.Or(err, ctx.Err()); err != nil {
						return err
					}
					s := api.AdvisedSampler{Solver: name, Levels: path.name, SigmaMax: top, Start: start, W2: report.W2}
					all = append(all, advised{s, report.Disturbed()})
				}
			}
		}
		slices.SortStableFunc(all, func(a, b advised) int { return cmp.Compare(a.disturbed, b.disturbed) })
		noise := slices.DeleteFunc(slices.Clone(all), func(s advised) bool { return s.Start != api.StartStandard })
		heun := slices.IndexFunc(noise, func(s advised) bool { return s.Solver == "heun" && s.Levels == solver.GridEDM })
		a.sampler(api.AdvisedSamplers{
			NFE: nfe, Best: all[0].AdvisedSampler, FromNoise: noise[0].AdvisedSampler, EDM: noise[heun].AdvisedSampler,
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
	switch model := fmt.Sprintf("model=%q, dataset=%q", a.req.Model, a.req.Dataset); {
	case a.model != nil && s.NFE <= 9:
		because += fmt.Sprintf(" On the model itself: make_schedule(NAME, \"few\", %s, nfe=%d).", model, s.NFE)
	case a.model != nil:
		because += fmt.Sprintf(" On the model itself, for heun: make_schedule(NAME, \"geodesic\", %s).", model)
	}
	a.item(fmt.Sprintf("%d evaluations", s.NFE), describe(s.Best), "%s", because)
}

// describe says a sampler in words.
func describe(s api.AdvisedSampler) string {
	start := map[string]string{api.StartStandard: "noise", api.StartMatched: "matched start"}[s.Start]
	return fmt.Sprintf("%s, %s, %s at σ %s", s.Solver, s.Levels, start, short(s.SigmaMax))
}

// short returns a number with three digits, and all of those before the point.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func percent(part float64) string { return short(100*part) + " %" }
