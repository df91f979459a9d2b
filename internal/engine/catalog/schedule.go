package catalog

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
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

// Parts are a schedule with its basis, start, statistics and fitted coefficients.
type Parts = checkpoint.Schedule

// Schedule is a schedule with its parts, under a name.
type Schedule struct {
	Parts
	Name                      string
	startHash, statisticsHash string // SHA-256 of the files of Start and Statistics; empty if there are none
}

func newSchedule(name string, parts Parts) (s Schedule, err error) {
	s = Schedule{Parts: parts, Name: name}
	if s.Start != nil {
		if s.startHash, err = checkpoint.StartFile.Hash(s.Start); err != nil {
			return s, err
		}
	}
	if s.Statistics != nil {
		s.statisticsHash, err = checkpoint.StatisticsFile.Hash(s.Statistics)
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
		if p.Few != nil && json.Unmarshal(p.Few, &info.Few) != nil {
			info.Few = nil // of an imported file, whose report is another's
		}
		var outcome api.Outcome
		_ = json.Unmarshal(p.Outcome, &outcome) // absent, or another's
		if info.Summary = cmp.Or(p.Summary, outcome.Summary); info.Few != nil {
			info.Summary = info.Few.Summary
		}
		p.Few = nil
		info.Provenance = p
	}
	if sampler := s.Sampler(); sampler != nil {
		info.Sampler = &api.ScheduleSampler{Solver: sampler.Solver, Order: sampler.Order, NFE: sampler.NFE}
	}
	if s.Statistics != nil {
		sigma := s.Statistics.Sigma()
		info.Statistics = &api.StatisticsInfo{
			Points: len(sigma), SigmaMin: sigma[0], SigmaMax: sigma[len(sigma)-1], Hash: s.statisticsHash,
			Labels: int32s(s.Statistics.Labels()),
		}
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

// CheckParts refuses statistics of other rows than the schedule's, coefficients in other coordinates than theirs, and a
// sampler whose parts are missing.
func CheckParts(s Parts) error {
	if f := s.Fitted; f != nil && (s.Statistics == nil || len(f.Alpha[0]) != s.Statistics.Size()) {
		return api.Errorf(api.BadSchedule, "fitted must have as many coordinates as statistics").
			WithHint("Give the two files that stand next to the schedule's.")
	}
	part := ""
	if sampler := s.Sampler(); sampler != nil && sampler.Solver == solver.LocalName && s.Statistics == nil {
		part = "statistics"
	} else if sampler != nil && sampler.Solver == solver.FittedName && s.Fitted == nil {
		part = "fitted"
	}
	if part != "" {
		return api.Errorf(api.BadSchedule, "%s must come with the schedule's file, whose sampler is %s", part,
			s.Sampler().Solver).WithHint("Give it, or remove sampler from the file.")
	}
	if s.Statistics != nil && !slices.Equal(s.Statistics.Labels(), s.Labels()) {
		return api.Errorf(api.BadSchedule, "statistics must be of the schedule's labels %v, got %v", s.Labels(),
			s.Statistics.Labels())
	}
	return nil
}

// Complete returns settings with the schedule's statistics, of a row, and fitted coefficients.
func (s Schedule) Complete(set solver.Settings, row int) solver.Settings {
	set.StatisticsRow = row
	if s.Statistics != nil {
		set.Statistics, set.Fitted = s.Statistics, s.Fitted
	}
	return set
}

// Plan returns the plan of a label on images of h×w×c, or of any size if h is 0.
func (s Schedule) Plan(set solver.Settings, label, h, w, c int) (*solver.Plan, error) {
	row, err := s.Row(label)
	if err != nil {
		return nil, err
	}
	p, err := solver.New(s.Complete(set, row), s.Schedule, row)
	if err != nil || p.Coordinates == nil || h == 0 {
		return p, err
	}
	if size := p.Coordinates; size.H != h || size.W != w || size.C != c {
		return nil, api.Errorf(api.BadRequest,
			"The statistics of the schedule %q are for images of %d×%d×%d, those of the model have %d×%d×%d",
			s.Name, size.H, size.W, size.C, h, w, c).WithHint("Make a schedule of the model itself.")
	}
	return p, nil
}

// DescribeEnergies describes the energies of a geodesic's paths.
func DescribeEnergies(reports []schedule.Report) (out []api.Energy) {
	for _, r := range reports {
		out = append(out, api.Energy{Energy: r.Energy, Stderr: r.EnergyStderr, Bound: r.Bound, BoundStderr: r.BoundStderr})
	}
	return out
}
