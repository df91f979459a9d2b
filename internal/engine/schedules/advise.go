package schedules

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"

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
	// mostFew is the largest number of evaluations for which the search few is recommended.
	mostFew = 8
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
	needed   float64      // highest noise level that the data ask for
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

// do adds a request to the last recommendation.
func (a *adviser) do(op string, fields map[string]any) {
	if a.model == nil && a.data.Height() != a.data.Width() {
		return // EDM's networks, which would be trained, are square
	}
	fields["op"] = op
	last := &a.out.Items[len(a.out.Items)-1]
	last.Do = append(last.Do, fields)
}

// modelName returns the name of the model that requests are for: without one, of that which is to be trained.
func (a *adviser) modelName() string { return cmp.Or(a.req.Model, a.req.Dataset) }

// rounded returns x to four digits, and no larger.
func rounded(x float64) float64 {
	r := func(x float64) float64 {
		v, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
		return v
	}
	if r(x) > x {
		return r(x * (1 - 5e-4))
	}
	return r(x)
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
	a.needed = math.Sqrt(a.scale.T)
	because = "From noise of this level alone the exact flow misses a thousandth of the Gaussian's variance."
	if a.model != nil {
		if a.scale = a.scale.Within(a.known); math.Sqrt(a.scale.T) < 0.999*a.needed {
			because = fmt.Sprintf("The highest noise level of the model; the data ask for %s.", short(a.needed))
		}
	}
	a.out.SigmaMax = math.Sqrt(a.scale.T)
	a.item("sigma_max", short(a.out.SigmaMax), "%s", because)
	because = "sigma_max squared."
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
	for s := sigma[0]; s < 100*a.needed; s *= sigma[1] / sigma[0] { // above, nothing is seen of the data
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
	run := map[string]any{
		"name": a.req.Dataset, "stage": "pretrain", "dataset": a.req.Dataset, "p_mean": rounded(a.out.PMean),
		"p_std": rounded(a.out.PStd),
	}
	if a.model != nil {
		a.item("training", "go on from "+a.req.Model, "At the noise levels of P_mean and P_std.")
		run["name"], run["model"] = a.req.Model+"-further", a.req.Model
	} else {
		a.item("training", "a new network", "With the five values above; the commands below sample the model that it saves.")
		run["network"] = map[string]any{
			"img_resolution": a.data.Height(), "img_channels": a.data.Channels(), "label_dim": a.data.Classes(),
			"sigma_data": rounded(a.out.SigmaData), "sigma_min": rounded(a.out.SigmaMin), "sigma_max": rounded(a.out.SigmaMax),
		}
	}
	a.do("CreateRun", run)
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
	gain := fmt.Sprintf("%.1f %%", 100*p.Gain)
	if p.GainStderr >= 5e-4 {
		gain = fmt.Sprintf("%.1f ± %.1f %%", 100*p.Gain, 100*p.GainStderr)
	}
	a.item("subspaces", value,
		"The best split, %s, lowers the energy on the %s by %s. Below %g %% samples did not improve.", name, a.by, gain,
		100*leastGain)
	geodesic := map[string]any{
		"kind": "geodesic", "name": a.modelName() + "-geodesic", "model": a.modelName(), "dataset": a.req.Dataset,
		"T": rounded(math.Pow(rounded(a.out.SigmaMax), 2)), "c": rounded(a.scale.C),
	}
	if !a.out.Subspaces.Worth {
		a.item("schedule", "geodesic", "For Heun's method at 9 evaluations and more, with T and c as above.")
		a.do("MakeSchedule", geodesic)
		return nil
	}
	geodesic["basis"], geodesic["per_class"] = p.Basis, p.PerClass
	switch {
	case p.Cuts != nil:
		geodesic["cuts"] = p.Cuts
	case basis.ByFormula(p.Basis):
		geodesic["k"] = p.K
	default:
		geodesic["basis"] = a.modelName() + "-" + p.Basis
		a.do("MakeBasis", map[string]any{
			"name": geodesic["basis"], "kind": p.Basis, "dataset": a.req.Dataset, "model": a.modelName(), "k": p.K,
		})
	}
	a.do("MakeSchedule", geodesic)
	return nil
}

// samplers measures, for each number of evaluations, iPNDM-4 on EDM's levels and Heun's method on EDM's and on the
// geodesic of the data's Gaussian, all from noise of level sigma_max. It recommends one that was tried on networks.
func (a *adviser) samplers(ctx context.Context, levels []float64) error {
	g0, density := a.known.G0(), []schedule.Sample{}
	edm, err := catalog.EDMFrom(a.scale.T, g0)
	if err != nil {
		return err
	}
	for _, s := range levels {
		density = append(density, schedule.ResidualSample(s, a.law.Residual(s), 0, a.scale.C))
	}
	path, _, err := schedule.Geodesic(density, passes.DefaultOrder, a.scale.T, g0, schedule.DefaultKnots)
	if err != nil {
		return err
	}
	for i, nfe := range a.req.NFE {
		out := api.AdvisedSamplers{NFE: nfe}
		for _, c := range []struct {
			out                  *api.AdvisedSampler
			solver, levels, grid string
			*schedule.Schedule
		}{
			{&out.IPNDM, "ipndm", solver.GridPolynomial, solver.GridPolynomial, edm},
			{&out.Heun, api.DefaultSolver, "geodesic", solver.GridSchedule, schedule.Isotropic(path)},
			{&out.EDM, api.DefaultSolver, solver.GridEDM, solver.GridEDM, edm},
		} {
			set := solver.Settings{Solver: c.solver, NFE: nfe, Grid: solver.Grid{Kind: c.grid, SigmaMax: a.out.SigmaMax}}
			plan, err := solver.New(set, c.Schedule, 0)
			if err != nil {
				return err
			}
			report, err := a.law.Bench(basis.None(a.law.H, a.law.W), plan)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			*c.out = api.AdvisedSampler{Solver: c.solver, Levels: c.levels, SigmaMax: a.out.SigmaMax, W2: report.W2}
		}
		a.sampler(out)
		a.progress.at(i+1, len(a.req.NFE))
	}
	return nil
}

// sampler adds the recommendation for a number of evaluations.
func (a *adviser) sampler(s api.AdvisedSamplers) {
	a.out.Samplers = append(a.out.Samplers, s)
	because := fmt.Sprintf("W2² to the data's Gaussian over its variance: ipndm %s, Heun on the geodesic %s, on EDM's "+
		"levels %s.", percent(s.IPNDM.W2), percent(s.Heun.W2), percent(s.EDM.W2))
	name := fmt.Sprintf("%d evaluations", s.NFE)
	sample := map[string]any{"model": a.modelName(), "n": 16, "nfe": s.NFE}
	if s.NFE <= mostFew {
		few := fmt.Sprintf("%s-few-%d", a.modelName(), s.NFE)
		a.item(name, "few", "Solvers and starts that are tried on the model itself. %s", because)
		a.do("MakeSchedule", map[string]any{
			"kind": "few", "name": few, "model": a.modelName(), "dataset": a.req.Dataset, "nfe": s.NFE,
		})
		sample["schedule"] = few
	} else {
		a.item(name, fmt.Sprintf("ipndm, polynomial from σ %s", short(s.IPNDM.SigmaMax)), "%s", because)
		sample["solver"], sample["grid"] = s.IPNDM.Solver, map[string]any{
			solver.GridPolynomial: map[string]any{"sigma_max": rounded(s.IPNDM.SigmaMax)},
		}
	}
	a.do("Sample", sample)
}

// short returns a number with three digits, and all of those before the point.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// percent returns a part of the variance. The mean image alone has all of it.
func percent(part float64) string {
	switch {
	case part >= 1:
		return "worse than the mean image alone"
	case part < 1e-4:
		return "below 0.01 %"
	}
	return fmt.Sprintf("%.2g %%", 100*part)
}
