package schedules

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/train/data"
)

const (
	// alike is how far the ratio of two distances may be from 1 to be called about the same.
	alike = 0.02
	// judgedNFE is the number of evaluations by which a schedule is judged that is for none: that of runs.
	judgedNFE = 9
	// byLaw says what a squared W2 distance is measured to.
	byLaw = "the squared W2 distance to the normal law with the data's mean and spectrum"
)

var errFormula = errors.New("a formula knows no data; BenchSchedule compares it with EDM's levels on those of a data set")

// notJudged is the summary of a schedule that cannot be compared.
func notJudged(why error) string { return fmt.Sprintf("not judged: %v", why) }

// worthOnLaw says what a sampler along a schedule is worth: by its squared 2-Wasserstein distance to the data's own
// Gaussian, against the same solver and, of Heun's method, iPNDM-4, on EDM's levels from noise alone. These end where
// a network's do or where the schedule does, whichever is better. A schedule with a row for each class is judged on the
// classes' Gaussians, by the mean.
func (k *Maker) worthOnLaw(ctx context.Context, dataset string, d *data.Dataset, parts catalog.Parts,
	set solver.Settings, known schedule.Range,
) (string, error) {
	if err := CheckMeasurable(dataset, d.Height(), d.Width(), d.Channels()); err != nil {
		return "", err
	}
	s, err := k.benchable(catalog.Schedule{Parts: parts, Name: "made"}, dataset, d)
	if err != nil {
		return "", err
	}
	rivals := []string{set.Solver}
	if set.Solver == api.DefaultSolver {
		rivals = append(rivals, "ipndm")
	}
	labels := benchLabels(s)
	spectra, err := search.Spectra(ctx, d, labels, func(int, int) {})
	if err != nil {
		return "", err
	}
	var plan *solver.Plan
	var own float64
	best := make([]search.EDMLevels, len(rivals)) // of the last class
	theirs := make([]float64, len(rivals))
	for _, label := range labels {
		var report *gaussian.Report
		if report, plan, err = benchAlong(s, spectra[label], set, label); err != nil {
			return "", err
		}
		own += report.W2
		for i, name := range rivals {
			rival := solver.Settings{Solver: name, NFE: set.NFE}
			if name == set.Solver {
				rival.Order, rival.SecondPoint = set.Order, set.SecondPoint
			}
			best[i], err = search.OnEDM(spectra[label], basis.None(d.Height(), d.Width()), schedule.Family{Basis: basis.KindNone}, rival,
				known.G0(), known.T(), s.T())
			if err != nil {
				return "", err
			}
			theirs[i] += best[i].W2
		}
	}
	said := fmt.Sprintf("%s, %d evaluations: %s EDM's levels from sigma %.4g (grid %s), with %.3g times %s", set.Solver,
		plan.NFE, api.Compare(own/theirs[0], alike), math.Sqrt(best[0].T), best[0].Sampler.Grid.Kind, own/theirs[0], byLaw)
	if len(rivals) > 1 {
		said += fmt.Sprintf("; %s ipndm there, with %.3g times that", api.Compare(own/theirs[1], alike), own/theirs[1])
	}
	return said, nil
}

// worthByEnergy says what a geodesic is worth that cannot be judged on a normal law, and why it cannot.
func worthByEnergy(s *schedule.Schedule, why error) (string, error) {
	edm, own, err := s.Gain()
	if err != nil {
		return "", err
	}
	ratio := own.Value / edm.Value
	chance := ratio * math.Hypot(own.Stderr/own.Value, edm.Stderr/edm.Value)
	return fmt.Sprintf("%s EDM's levels by energy, which ranks no samplers, with %.3g ± %.1g times theirs; otherwise %s",
		api.Compare(ratio, 2*chance), ratio, chance, notJudged(why)), nil
}

// worthOfLevels says what levels that were chosen for a solver are worth against EDM's.
func worthOfLevels(b *api.Bench) string {
	ratio := b.Nodes.W2 / b.Baseline.W2
	return fmt.Sprintf("%s, %d evaluations: %s EDM's levels (grid %s) from the same start, with %.3g times %s", b.Solver,
		b.Nodes.NFE, api.Compare(ratio, alike), b.Baseline.Grid, ratio, byLaw)
}

// worthOfFit says what fitted coefficients are worth against those where the fit began.
func worthOfFit(f *api.Fit, isotropic bool) string {
	ratio, began := f.Fitted/f.Local, solver.LocalName
	if isotropic {
		began = "DPM-Solver++"
	}
	return fmt.Sprintf("%s, %d evaluations: %s %s on the same levels, with %.3g times its error beside converged "+
		"samples, on %d trajectories held back", solver.FittedName, f.NFE, api.Compare(ratio, alike), began, ratio, f.Samples)
}

// samplerFor returns the sampler that a schedule is judged with: its own or, of one that serves any, as started ones are
// sampled, DPM-Solver++(2M) from EDM's rule.
func samplerFor(s *schedule.Schedule) solver.Settings {
	if of := s.Sampler(); of != nil {
		return solver.Settings{Solver: of.Solver, Order: of.Order, NFE: of.NFE}
	}
	return solver.Settings{Solver: "dpmpp2m", NFE: 5, Grid: solver.Grid{Kind: solver.GridPolynomial}}
}
