package schedules

import (
	"context"
	"fmt"
	"math"
	"strings"

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
	// byLaw says what a squared W2 distance is measured to.
	byLaw = "the squared W2 distance to the normal law with the data's mean and spectrum"
)

// worth says what a sampler is worth against a rival, by the ratio of a measure of their errors.
func worth(name string, nfe int, ratio float64, rival, measure string) string {
	return fmt.Sprintf("%s, %d evaluations: %s %s, with %.3g times %s", name, nfe, api.Compare(ratio, alike), rival, ratio,
		measure)
}

// worthOnLaw says what a sampler along a schedule is worth: by its squared 2-Wasserstein distance to the data's own
// Gaussian, against the same solver on EDM's levels from noise alone and, of Heun's method, against iPNDM-4 and the
// other second point there. EDM's levels end where a network's do or where the schedule does, whichever is better. A
// schedule with a row for each class is judged on the classes' Gaussians, by the mean.
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
	rivals := []solver.Settings{set}
	if set.Solver == api.DefaultSolver {
		rivals = append(rivals, solver.Settings{Solver: "ipndm", NFE: set.NFE})
		if set.SecondPoint == solver.Endpoint { // samples have the other one by default
			rivals = append(rivals, solver.Settings{Solver: set.Solver, NFE: set.NFE, SecondPoint: solver.Midpoint})
		}
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
		for i, rival := range rivals {
			best[i], err = search.OnEDM(spectra[label], basis.None(d.Height(), d.Width()),
				schedule.Family{Basis: basis.KindNone}, rival, known.G0(), known.T(), s.T())
			if err != nil {
				return "", err
			}
			theirs[i] += best[i].W2
		}
	}
	var said string
	for i, rival := range rivals {
		name := strings.TrimSpace(rival.Solver + " " + rival.SecondPoint)
		if ratio := own / theirs[i]; i == 0 {
			said = worth(name, plan.NFE, ratio, fmt.Sprintf("EDM's levels from sigma %.4g (grid %s)", math.Sqrt(best[0].T),
				best[0].Sampler.Grid.Kind), byLaw)
		} else {
			said += fmt.Sprintf("; %s %s on those, with %.3g times that", api.Compare(ratio, alike), name, ratio)
		}
	}
	if s.Start != nil {
		said += "; a normal law favours a start from it"
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
	return fmt.Sprintf("%s EDM's levels by energy, which ranks no samplers, with %.3g ± %.1g times theirs; not judged "+
		"otherwise: %v", api.Compare(ratio, 2*chance), ratio, chance, why), nil
}
