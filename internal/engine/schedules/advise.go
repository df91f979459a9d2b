package schedules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

const (
	// leastGain is the least part of the energy that subspaces must save: less has not improved samples.
	leastGain = 0.1
	// mostFew is the largest number of evaluations for which the search few is recommended.
	mostFew = 8
)

// adviser writes the advice of one request.
type adviser struct {
	req      api.Advise
	model    *catalog.Model // nil for none
	source   string         // whose residual it is
	data     *data.Dataset
	measured *search.Advice
	out      api.Advice
}

// Advise measures a data set, and a model on it if the request names one, and recommends settings.
func (k *Maker) Advise(ctx context.Context, req api.Advise, report func(api.Meta)) (_ api.Advice, err error) {
	a := &adviser{req: req, source: "data's Gaussian"}
	set := search.AdviceSettings{
		NFE: req.NFE, Samples: req.Samples, Seed: req.Seed, Progress: search.NewProgress(api.ThrottledProgressByPart(report)),
	}
	if req.Model != "" {
		if a.model, err = k.Catalog.Model(req.Model); err != nil {
			return a.out, err
		}
		set.Known, a.source = a.model.Shape.Range, "model "+req.Model
		set.Survey = func(ctx context.Context, set passes.PredictSettings) (*passes.Survey, error) {
			return k.survey(ctx, a.model, a.data, set)
		}
	}
	if a.data, err = k.Catalog.SeenBy(req.Model, req.Dataset); err != nil {
		return a.out, err
	}
	if err := CheckMeasurable(req.Dataset, a.data.Height(), a.data.Width(), a.data.Channels()); err != nil {
		return a.out, err
	}
	a.measured, err = search.Advise(ctx, a.data, set)
	if flat, ok := errors.AsType[*search.FlatError](err); ok {
		return a.out, api.Errorf(api.BadRequest, "The images of %q must differ by more than σ = %g, got a variance of %.3g",
			req.Dataset, schedule.DefaultSigmaMin, flat.Variance).WithHint(`Store floats with scale "measured".`)
	}
	if err != nil {
		return a.out, err
	}
	f := a.measured
	a.out = api.Advice{
		Images: f.Images, SigmaData: f.SigmaData, SigmaMin: f.SigmaMin, SigmaMax: f.SigmaMax, PMean: f.PMean, PStd: f.PStd,
		T: f.T, C: f.C, Variance: f.Variance, Sigma: f.Sigma, Ratio: f.Ratio, ModelRatio: f.NetworkRatio,
	}
	a.scales()
	a.training()
	a.subspaces()
	for _, s := range f.Samplers {
		a.sampler(s)
	}
	return a.out, nil
}

// survey measures the residual of a model.
func (k *Maker) survey(ctx context.Context, m *catalog.Model, d *data.Dataset, set passes.PredictSettings,
) (survey *passes.Survey, err error) {
	network, err := m.IsotropicNetwork()
	if err != nil {
		return nil, err
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	defer m.Release()
	err = k.Batcher.Run(ctx, set.Progress, func(report func(done, total int)) (err error) {
		set.Progress = report
		survey, err = passes.MeasureSurvey(ctx, network, m.Weights(), d, set)
		return err
	})
	return survey, err
}

// item adds a recommendation for people.
func (a *adviser) item(name, value, because string, args ...any) {
	a.out.Items = append(a.out.Items, api.AdvisedItem{Name: name, Value: value, Because: fmt.Sprintf(because, args...)})
}

// do adds a request to the last recommendation.
func (a *adviser) do(op string, fields map[string]any) {
	if a.model == nil && a.data.Height() != a.data.Width() {
		return // the network that would be trained is square
	}
	fields["op"] = op
	last := &a.out.Items[len(a.out.Items)-1]
	last.Do = append(last.Do, fields)
}

// modelName returns the name of the request's model, or of the model that is to be trained.
func (a *adviser) modelName() string { return cmp.Or(a.req.Model, a.req.Dataset) }

// roundDown returns x to four digits, and no larger.
func roundDown(x float64) float64 {
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
	a.item("sigma_data", short(a.out.SigmaData), "The deviation of %d images' values from the mean image, whose own have "+
		"the root mean square %s.", a.out.Images, short(a.measured.Mean))
	because := fmt.Sprintf("8 bits round with the deviation %.2g: below it there is nothing to learn.",
		2/(255*math.Sqrt(12)))
	if a.data.IsFloat() {
		because = "EDM's share of sigma_data, as floats do not say how they were rounded."
	}
	a.item("sigma_min", short(a.out.SigmaMin), "%s", because)
	because = "From noise of this level alone the exact flow misses a thousandth of the Gaussian's variance."
	if a.model != nil && a.out.SigmaMax < 0.999*a.measured.Needed {
		because = fmt.Sprintf("The highest noise level of the model; the data ask for %s.", short(a.measured.Needed))
	}
	a.item("sigma_max", short(a.out.SigmaMax), "%s", because)
	a.item("T", short(a.out.T), "sigma_max squared.")
	a.item("c", short(a.out.C), "The data's variance, summed over an image: with less, the path hurries through the "+
		"noise levels of the leading directions.")
}

// training recommends where to train.
func (a *adviser) training() {
	because := "ln σ, weighted by the part of the loss that the best denoiser of the Gaussian takes off"
	switch {
	case a.measured.White:
		because = "EDM's, moved to this sigma_data, as white data leave nothing to learn"
	case a.model != nil:
		because = "ln σ, weighted by the part of the loss that the " + a.source + " takes off"
	}
	a.item("P_mean", short(a.out.PMean), "Mean of %s (EDM: -1.2).", because)
	a.item("P_std", short(a.out.PStd), "Deviation of %s (EDM: 1.2).", because)
	run := map[string]any{
		"name": a.req.Dataset, "stage": "pretrain", "dataset": a.req.Dataset, "p_mean": roundDown(a.out.PMean),
		"p_std": roundDown(a.out.PStd),
	}
	if a.model != nil {
		a.item("training", "go on from "+a.req.Model, "At the noise levels of P_mean and P_std.")
		run["name"], run["model"] = a.req.Model+"-further", a.req.Model
	} else {
		a.item("training", "a new network", "With the five values above; the commands below sample the model that it saves.")
		run["network"] = map[string]any{
			"img_resolution": a.data.Height(), "img_channels": a.data.Channels(), "label_dim": a.data.Classes(),
			"sigma_data": roundDown(a.out.SigmaData), "sigma_min": roundDown(a.out.SigmaMin),
			"sigma_max": roundDown(a.out.SigmaMax),
		}
	}
	a.do("CreateRun", run)
}

// subspaces recommends a family of schedules.
func (a *adviser) subspaces() {
	p := a.measured.Subspaces
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
		"The best split, %s, lowers the energy on the %s by %s. Below %g %% samples did not improve.", name, a.source, gain,
		100*leastGain)
	geodesic := map[string]any{
		"kind": "geodesic", "name": a.modelName() + "-geodesic", "model": a.modelName(), "dataset": a.req.Dataset,
		"T": roundDown(math.Pow(roundDown(a.out.SigmaMax), 2)), "c": roundDown(a.out.C),
	}
	if !a.out.Subspaces.Worth {
		a.item("schedule", "geodesic", "For Heun's method at 9 evaluations and more, with T and c as above.")
		a.do("MakeSchedule", geodesic)
		return
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
}

// sampler adds the recommendation for a number of evaluations.
func (a *adviser) sampler(predicted search.AdvisedSamplers) {
	advised := func(solver, levels string, w2 float64) api.AdvisedSampler {
		return api.AdvisedSampler{Solver: solver, Levels: levels, SigmaMax: a.out.SigmaMax, W2: w2}
	}
	s := api.AdvisedSamplers{
		NFE: predicted.NFE, IPNDM: advised("ipndm", solver.GridPolynomial, predicted.IPNDM),
		Heun: advised(api.DefaultSolver, "geodesic", predicted.Heun),
		EDM:  advised(api.DefaultSolver, solver.GridEDM, predicted.EDM),
	}
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
			solver.GridPolynomial: map[string]any{"sigma_max": roundDown(s.IPNDM.SigmaMax)},
		}
	}
	a.do("Sample", sample)
}

// short returns a number with at least three digits, and with all digits before the point.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// percent returns a part of the variance as text. The error of the mean image is the whole variance.
func percent(part float64) string {
	switch {
	case part >= 1:
		return "worse than the mean image alone"
	case part < 1e-4:
		return "below 0.01 %"
	}
	return fmt.Sprintf("%.2g %%", 100*part)
}
