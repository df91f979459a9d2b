package search

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

const (
	// surveyPoints is the number of noise levels of a survey.
	surveyPoints = 48
	// surveyError is the error of a measured loss ratio r: 1 − r below it counts as 0.
	surveyError = 0.02
	// EDM's settings of training (arXiv:2206.00364, table 1).
	edmSigmaData, edmPMean, edmPStd = 0.5, -1.2, 1.2
)

// AdviceSettings are the settings of Advise.
type AdviceSettings struct {
	NFE     []int
	Samples int // of each noise level
	Seed    uint64
	Known   schedule.Range // noise levels of a network
	// Survey measures the residual of a network on the data; nil means that of the data's Gaussian.
	Survey func(ctx context.Context, set passes.PredictSettings) (*passes.Survey, error)
	// Progress may be nil.
	Progress *Progress
}

// Advice is what Advise derives from a data set, and from a network on it.
type Advice struct {
	Images   int                // that Law was measured on, evenly spaced in the data set
	Law      *gaussian.Spectrum // the data's Gaussian
	Variance []float64          // mean of a direction by DCT frequency max(u, v)
	Mean     float64            // root mean square of the mean image
	// SigmaData and SigmaMin are those of EDM's preconditioning. Needed is the highest noise level that the data need, and
	// SigmaMax the same within the network's range.
	SigmaData, SigmaMin, SigmaMax, Needed float64
	passes.Scale                          // T and c of schedules

	// Ratio is the loss ratio r of the Gaussian's best denoiser at the noise levels Sigma, and NetworkRatio that of the
	// network at the first of them.
	Sigma, Ratio, NetworkRatio []float64
	// PMean and PStd are the noise levels to train at, by the loss that can still be reduced. White data leave nothing to
	// learn; then these are EDM's.
	PMean, PStd float64
	White       bool

	Subspaces passes.Prediction // the family of the least energy
	Samplers  []AdvisedSamplers // by NFE
}

// AdvisedSamplers are the distances to the data's Gaussian of samplers with NFE evaluations from noise of level
// SigmaMax: squared 2-Wasserstein distances over the variance.
type AdvisedSamplers struct {
	NFE   int
	IPNDM float64 // of order 4 on the grid polynomial
	Heun  float64 // on the geodesic of the data's Gaussian
	EDM   float64 // Heun's method on EDM's levels
}

// FlatError is returned for images that do not differ.
type FlatError struct{ Variance float64 }

func (e *FlatError) Error() string {
	return fmt.Sprintf("images must differ by more than σ = %g, got a variance of %.3g", schedule.DefaultSigmaMin,
		e.Variance)
}

// adviser is one measurement for advice.
type adviser struct {
	AdviceSettings
	data *data.Dataset
	out  *Advice
}

// Advise measures a data set, and a network on it if set.Survey is not nil. It returns a *FlatError for images that do
// not differ.
func Advise(ctx context.Context, d *data.Dataset, set AdviceSettings) (*Advice, error) {
	if set.Progress == nil {
		set.Progress = NewProgress(nil)
	}
	a := &adviser{AdviceSettings: set, data: d, out: &Advice{}}
	a.Progress.Begin("images", 100, 0)
	var err error
	if a.out.Law, a.out.Images, err = passes.MeasureSpectrum(ctx, d, a.Progress.At); err != nil {
		return nil, err
	}
	a.out.Scale = passes.ScaleOf(a.out.Law)
	if !(a.out.T > 2*schedule.DefaultSigmaMin*schedule.DefaultSigmaMin) {
		return nil, &FlatError{a.out.Law.Variance()}
	}
	a.scales()
	a.Progress.Begin("noise levels", 800, 0)
	survey, err := a.survey(ctx)
	if err != nil {
		return nil, err
	}
	levels, residual := survey.Residual()
	a.training(levels, residual)
	predicted, err := survey.Predictions(ctx)
	if err != nil {
		return nil, err
	}
	a.out.Subspaces = predicted[0]
	a.Progress.Begin("samplers", 100, 0)
	return a.out, a.samplers(ctx, levels)
}

// scales sets what follows from the variances of the data's Gaussian alone.
func (a *adviser) scales() {
	law, out := a.out.Law, a.out
	bands := max(law.H, law.W)
	out.Variance = make([]float64, bands)
	count, mean, n := make([]float64, bands), 0.0, float64(len(law.Directions))
	for i, d := range law.Directions {
		band := max(i/law.C/law.W, i/law.C%law.W)
		count[band]++
		out.Variance[band] += (d.Variance - out.Variance[band]) / count[band]
		mean += d.Mean * d.Mean / n
	}
	out.Mean, out.SigmaData = math.Sqrt(mean), math.Sqrt(law.Variance()/n)
	out.SigmaMin = schedule.DefaultSigmaMin
	if a.data.IsFloat() {
		out.SigmaMin *= out.SigmaData / edmSigmaData
	}
	out.Needed = math.Sqrt(out.T)
	if a.Survey != nil {
		out.Scale = out.Within(a.Known)
	}
	out.SigmaMax = math.Sqrt(out.T)
}

// survey measures the residual of the network, or computes that of the data's Gaussian.
func (a *adviser) survey(ctx context.Context) (*passes.Survey, error) {
	law := a.out.Law
	set := passes.PredictSettings{
		T: a.out.T, C: a.out.C, G0: a.Known.G0(), Points: surveyPoints, Seed: a.Seed, Progress: a.Progress.At,
	}
	if a.Survey == nil || law.H*law.W == 1 { // single pixels have no subspaces
		return passes.GaussianSurvey(law, set), nil
	}
	set.Samples = max(2, a.Samples/max(1, a.data.Classes()))
	return a.Survey(ctx, set)
}

// training sets the noise levels to train at.
func (a *adviser) training(sigma, residual []float64) {
	var ratio []float64
	law, out := a.out.Law, a.out
	for s := sigma[0]; s < 100*out.Needed; s *= sigma[1] / sigma[0] { // above, nothing is seen of the data
		r := law.LossRatio(s, law.Residual(s))
		out.Sigma, out.Ratio = append(out.Sigma, s), append(out.Ratio, r)
		if i := len(ratio); a.Survey != nil && i < len(residual) {
			r = law.LossRatio(s, residual[i])
			out.NetworkRatio = append(out.NetworkRatio, r)
			if r > 1-surveyError {
				r = 1
			}
		}
		ratio = append(ratio, r)
	}
	var ok bool
	if out.PMean, out.PStd, ok = gaussian.TrainingLevels(out.Sigma, ratio); !ok {
		out.PMean, out.PStd, out.White = edmPMean+math.Log(out.SigmaData/edmSigmaData), edmPStd, true
	}
}

// samplers measures samplers for each number of evaluations.
func (a *adviser) samplers(ctx context.Context, levels []float64) error {
	law, out := a.out.Law, a.out
	g0, density := a.Known.G0(), []schedule.Sample{}
	edm, err := schedule.EDM(out.T, g0)
	if err != nil {
		return err
	}
	for _, s := range levels {
		density = append(density, schedule.ResidualSample(s, law.Residual(s), 0, out.C))
	}
	path, _, err := schedule.Geodesic(density, passes.DefaultOrder, out.T, g0, schedule.DefaultKnots)
	if err != nil {
		return err
	}
	for i, nfe := range a.NFE {
		of := AdvisedSamplers{NFE: nfe}
		for _, c := range []struct {
			w2           *float64
			solver, grid string
			*schedule.Schedule
		}{
			{&of.IPNDM, "ipndm", solver.GridPolynomial, edm},
			{&of.Heun, "heun", solver.GridSchedule, schedule.Isotropic(path)},
			{&of.EDM, "heun", solver.GridEDM, edm},
		} {
			set := solver.Settings{Solver: c.solver, NFE: nfe, Grid: solver.Grid{Kind: c.grid, SigmaMax: out.SigmaMax}}
			report, err := law.BenchSampler(basis.None(law.H, law.W), set, c.Schedule)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			*c.w2 = report.W2
		}
		out.Samplers = append(out.Samplers, of)
		a.Progress.At(i+1, len(a.NFE))
	}
	return nil
}
