package catalog

import (
	"cmp"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// EDM returns EDM's noise levels as a schedule from the variance g0 to T, shared by all classes.
func EDM(T, g0 float64) (*schedule.Schedule, error) {
	s, err := schedule.EDM(T, g0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "An EDM schedule cannot end at T = %g: %w", T, err)
	}
	return s, nil
}

// Parts are a schedule with its basis and start.
type Parts = checkpoint.Schedule

// Schedule is a schedule with its parts, under a name.
type Schedule struct {
	Parts
	Name      string
	startHash string // SHA-256 of the file of Start; empty if there is none
}

func newSchedule(name string, parts Parts) (s Schedule, err error) {
	s = Schedule{Parts: parts, Name: name}
	if s.Start != nil {
		s.startHash, err = checkpoint.StartFile.Hash(s.Start)
	}
	return s, err
}

// describeSchedule describes a schedule as lists do; source is schedule or model.
func describeSchedule(source string, s Schedule) api.ScheduleInfo {
	family := s.Family()
	info := api.ScheduleInfo{
		Name: s.Name, Source: source, T: s.T(), J: s.J(), PerClass: family.PerClass,
		Basis: family.Basis, K: family.K, Cuts: family.Cuts, Labels: int32s(s.Labels()), Start: s.StartInfo(),
	}
	if p := s.Provenance(); p != nil {
		var outcome api.Outcome
		_ = json.Unmarshal(p.Outcome, &outcome) // absent, or another's
		info.Summary = cmp.Or(p.Summary, outcome.Summary)
		p.Few = nil
		info.Provenance = p
	}
	return info
}

// OwnSchedule returns the model's own schedule, which is EDM's if it has none.
func (m *Model) OwnSchedule() (Schedule, error) {
	if m.Schedule != nil {
		return Schedule{Parts: Parts{Schedule: m.Schedule, Basis: m.Basis}, Name: m.Name}, nil
	}
	return m.edm(0)
}

// edm returns EDM's schedule over the model's noise levels, up to T if that is not 0.
func (m *Model) edm(T float64) (Schedule, error) {
	if T == 0 {
		T = m.Shape.Range.T()
	}
	s, err := EDM(T, m.Shape.Range.G0())
	return Schedule{Parts: Parts{Schedule: s}, Name: "edm"}, err
}

// StartInfo describes the schedule's start as lists do; nil for none.
func (s Schedule) StartInfo() *api.StartInfo {
	if s.Start == nil {
		return nil
	}
	return DescribeStart(s.Start, s.startHash)
}

// DescribeStart describes a start, whose file has a hash.
func DescribeStart(s *start.Start, hash string) *api.StartInfo {
	set, all := s.Settings(), s.Law(start.Shared)
	return &api.StartInfo{
		Covariance: set.Covariance, PerClass: set.PerClass, Shrinkage: set.Shrinkage, Images: all.Images,
		Variance: all.TotalVariance(), Hash: hash, Labels: int32s(s.Labels()),
	}
}

func int32s(labels []int) (out []int32) {
	for _, label := range labels {
		out = append(out, int32(label))
	}
	return out
}

// StartFor returns the start selected by the request's field start; nil means white noise.
func (s Schedule) StartFor(field string) (*start.Start, error) {
	if field == api.StartMatched && s.Start == nil {
		return nil, api.Errorf(api.BadRequest,
			"start must not be matched on the schedule %q, which has no law of the data",
			s.Name).WithHint("Make one with MakeSchedule of kind start.")
	}
	if field == api.StartStandard {
		return nil, nil
	}
	return s.Start, nil
}

// DescribeEnergies describes the energies of a geodesic's paths.
func DescribeEnergies(reports []schedule.Report) (out []api.Energy) {
	for _, r := range reports {
		out = append(out, api.Energy{Energy: r.Energy, Stderr: r.EnergyStderr, Bound: r.Bound, BoundStderr: r.BoundStderr})
	}
	return out
}
