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
	// sameWithin is how far the ratio of two distances may be from 1 if they are about the same.
	sameWithin = 0.02
	// byLaw names the measure of a squared W2 distance.
	byLaw = "the squared W2 distance to the normal law with the data's mean and spectrum"
)

// worth compares a sampler with a rival, by the ratio of a measure of their errors.
func worth(name string, nfe int, ratio float64, rival, measure string) string {
	return fmt.Sprintf("%s, %d evaluations: %s %s, with %.3g times %s", name, nfe, api.Compare(ratio, sameWithin), rival,
		ratio, measure)
}

// worthOnLaw compares a sampler on a schedule, by its squared 2-Wasserstein distance to the data's Gaussian, with the
// same solver on EDM's levels from noise, and Heun's method also with iPNDM-4 and its other second point there. EDM's
// levels end where the network's do or where the schedule does, whichever is better. A schedule with a row for each
// class is judged on the classes' Gaussians, by the mean.
func (k *Maker) worthOnLaw(ctx context.Context, dataset string, d *data.Dataset, parts catalog.Parts,
	set solver.Settings, levels schedule.Range,
) (string, error) {
	if err := CheckMeasurable(dataset, d.Height(), d.Width(), d.Channels()); err != nil {
		return "", err
	}
	s := catalog.Schedule{Parts: parts, Name: "made"}
	var err error
	if s.Basis, err = k.Catalog.BasisFor(s.Family(), d.Height(), d.Width(), s.Basis, nil); err != nil {
		return "", err
	}
	if kind := s.Basis.Kind(); kind != basis.KindNone && kind != basis.KindDCT {
		return "", api.Errorf(api.BadRequest, "the schedule has subspaces that mix frequencies")
	}
	rivals := []solver.Settings{set}
	if set.Solver == api.DefaultSolver {
		rivals = append(rivals, solver.Settings{Solver: "ipndm", NFE: set.NFE})
		if set.SecondPoint == solver.Endpoint { // samples have the other one by default
			rivals = append(rivals, solver.Settings{Solver: set.Solver, NFE: set.NFE, SecondPoint: solver.Midpoint})
		}
	}
	labels := rowLabels(s)
	spectra, err := search.Spectra(ctx, d, labels, func(int, int) {})
	if err != nil {
		return "", err
	}
	var plan *solver.Plan
	var ours float64
	best := make([]search.EDMLevels, len(rivals)) // of the last class
	theirs := make([]float64, len(rivals))
	for _, label := range labels {
		var report *gaussian.Report
		if report, plan, err = benchAlong(s, spectra[label], set, label); err != nil {
			return "", err
		}
		ours += report.W2
		for i, rival := range rivals {
			best[i], err = search.OnEDM(spectra[label], rival, levels.G0(), levels.T(), s.T())
			if err != nil {
				return "", err
			}
			theirs[i] += best[i].W2
		}
	}
	var text string
	for i, rival := range rivals {
		name := strings.TrimSpace(rival.Solver + " " + rival.SecondPoint)
		if ratio := ours / theirs[i]; i == 0 {
			text = worth(name, plan.NFE, ratio, fmt.Sprintf("EDM's levels from sigma %.4g (grid %s)", math.Sqrt(best[0].T),
				best[0].Sampler.Grid.Kind), byLaw)
		} else {
			text += fmt.Sprintf("; %s %s on those, with %.3g times that", api.Compare(ratio, sameWithin), name, ratio)
		}
	}
	if s.Start != nil {
		text += "; a normal law favours a start from it"
	}
	return text, nil
}

// worthByEnergy compares a geodesic with EDM's levels by energy. why is the reason that a normal law cannot judge it.
func worthByEnergy(s *schedule.Schedule, why error) (string, error) {
	edm, geodesic, err := s.Gain()
	if err != nil {
		return "", err
	}
	ratio := geodesic.Value / edm.Value
	chance := ratio * math.Hypot(geodesic.Stderr/geodesic.Value, edm.Stderr/edm.Value)
	return fmt.Sprintf("%s EDM's levels by energy, which ranks no samplers, with %.3g ± %.1g times theirs; not judged "+
		"otherwise: %v", api.Compare(ratio, 2*chance), ratio, chance, why), nil
}

// benchAlong runs a sampler along a schedule on the Gaussian of a label, from the schedule's start if it has one.
func benchAlong(s catalog.Schedule, law *gaussian.Spectrum, set solver.Settings, label int,
) (report *gaussian.Report, plan *solver.Plan, err error) {
	if s.Start != nil {
		if law, err = law.StartedFrom(s.Start.Law(label)); err != nil {
			return nil, nil, err
		}
	}
	row, err := s.Row(label)
	if err != nil {
		return nil, nil, err
	}
	if plan, err = solver.New(set, s.Schedule, row); err != nil {
		return nil, nil, err
	}
	report, err = law.Bench(s.Basis, plan)
	return report, plan, err
}
