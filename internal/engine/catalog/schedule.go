package catalog

import (
	"encoding/json"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// EDM returns EDM's noise grid as a schedule between the default g_0 and T, shared by all classes.
func EDM(T float64) (*schedule.Schedule, error) { return EDMFrom(T, schedule.DefaultG0) }

// EDMFrom is EDM from the variance g0.
func EDMFrom(T, g0 float64) (*schedule.Schedule, error) {
	theta, err := schedule.InitialTheta("edm", schedule.DefaultKnots, T, g0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no EDM schedule that ends at T = %g: %w", T, err)
	}
	return schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, g0)
}

// Schedule is a schedule with where it came from.
type Schedule struct {
	*schedule.Schedule
	Name  string
	Basis *basis.Basis // that travels with it; nil where its family's name is enough
	Start *Start       // law of the data that sampling starts from; nil for noise alone
	// Statistics are those of a denoiser, for the solver local; nil where there are none.
	Statistics *Statistics
	Fitted     *solver.Fitted // coefficients of the solver fitted; nil for none
}

// NewSchedule returns a schedule with what travels with it, under a name.
func NewSchedule(name string, of checkpoint.Schedule) (Schedule, error) {
	s := Schedule{Schedule: of.Schedule, Name: name, Basis: of.Basis, Fitted: of.Fitted}
	var err error
	if s.Start, err = hashedStart(of.Start); err != nil {
		return s, err
	}
	s.Statistics, err = hashedStatistics(of.Statistics)
	return s, err
}

// Stored returns what NewSchedule was given.
func (s Schedule) Stored() checkpoint.Schedule {
	of := checkpoint.Schedule{Schedule: s.Schedule, Basis: s.Basis, Fitted: s.Fitted}
	if s.Start != nil {
		of.Start = s.Start.Start
	}
	if s.Statistics != nil {
		of.Statistics = s.Statistics.Statistics
	}
	return of
}

// DescribeSchedule says what lists say about s.
func DescribeSchedule(source string, s Schedule) api.ScheduleInfo {
	family := s.Family()
	info := api.ScheduleInfo{
		Name: s.Name, Source: source, T: s.T(), J: s.J(), PerClass: family.PerClass,
		Basis: family.Basis, K: family.K, Cuts: family.Cuts,
	}
	for _, label := range s.Labels() {
		info.Labels = append(info.Labels, int32(label))
	}
	if p := s.Provenance(); p != nil {
		if p.Few != nil && json.Unmarshal(p.Few, &info.Few) != nil {
			info.Few = nil // of an imported file, whose report is another's
		}
		p.Few = nil
		info.Provenance = p
	}
	if of := s.Sampler(); of != nil {
		info.Sampler = &api.ScheduleSampler{Solver: of.Solver, Order: of.Order, NFE: of.NFE}
	}
	info.Start, info.Statistics = s.Start.Describe(), s.Statistics.Describe()
	return info
}

// OwnSchedule returns the schedule that the model's name means.
func (m *Model) OwnSchedule() (Schedule, error) {
	if m.Schedule != nil {
		return Schedule{Schedule: m.Schedule, Name: m.Name, Basis: m.Basis}, nil
	}
	return m.edm(0)
}

// edm returns EDM's schedule over the model's noise levels, up to T where that is not 0.
func (m *Model) edm(T float64) (Schedule, error) {
	if T == 0 {
		T = m.Shape.Range.T()
	}
	s, err := EDMFrom(T, m.Shape.Range.G0())
	return Schedule{Schedule: s, Name: "edm"}, err
}

// Start is the law of the data that sampling along a schedule starts from, with the SHA-256 of its file.
type Start struct {
	*start.Start
	Hash string
}

// hashedStart returns a start with its hash, nil for nil.
func hashedStart(s *start.Start) (*Start, error) {
	if s == nil {
		return nil, nil
	}
	hash, err := checkpoint.StartFile.Hash(s)
	return &Start{Start: s, Hash: hash}, err
}

// Describe says what lists say about a start, nil for noise alone.
func (s *Start) Describe() *api.StartInfo {
	if s == nil {
		return nil
	}
	set, all := s.Settings(), s.Law(start.Shared)
	info := &api.StartInfo{
		Covariance: set.Covariance, Rank: set.Rank, Cuts: set.Cuts, PerClass: set.PerClass, Shrinkage: set.Shrinkage,
		Images: all.Images, Variance: all.TotalVariance(), Hash: s.Hash,
	}
	for _, label := range s.Labels() {
		info.Labels = append(info.Labels, int32(label))
	}
	return info
}

// StartFor returns the start that a request means by its field start, standard, matched or neither: nil for noise
// alone.
func (s Schedule) StartFor(field string) (*Start, error) {
	if field == api.StartMatched && s.Start == nil {
		return nil, api.Errorf(api.BadRequest,
			"start must not be matched on the schedule %q, which carries no law of the data",
			s.Name).WithHint("Make one that does with MakeSchedule of kind start.")
	}
	if field == api.StartStandard {
		return nil, nil
	}
	return s.Start, nil
}

// Statistics are those of the denoiser that a schedule was made with, with the SHA-256 of their file.
type Statistics struct {
	*local.Statistics
	Hash string
}

// hashedStatistics returns statistics with their hash, nil for nil.
func hashedStatistics(s *local.Statistics) (*Statistics, error) {
	if s == nil {
		return nil, nil
	}
	hash, err := checkpoint.StatisticsFile.Hash(s)
	return &Statistics{Statistics: s, Hash: hash}, err
}

// Describe says what lists say about statistics, nil for none.
func (s *Statistics) Describe() *api.StatisticsInfo {
	if s == nil {
		return nil
	}
	sigma := s.Sigma()
	info := &api.StatisticsInfo{Points: len(sigma), SigmaMin: sigma[0], SigmaMax: sigma[len(sigma)-1], Hash: s.Hash}
	for _, label := range s.Labels() {
		info.Labels = append(info.Labels, int32(label))
	}
	return info
}

// CheckStatistics refuses statistics of other rows than the schedule's.
func (s Schedule) CheckStatistics() error {
	if s.Statistics == nil || slices.Equal(s.Statistics.Labels(), s.Labels()) {
		return nil
	}
	return api.Errorf(api.BadSchedule, "statistics must be of the schedule's labels %v, got %v", s.Labels(),
		s.Statistics.Labels())
}

// Complete returns settings with what the schedule carries for solvers by coordinate.
func (s Schedule) Complete(set solver.Settings) solver.Settings {
	if s.Statistics != nil {
		set.Statistics, set.Fitted = s.Statistics.Statistics, s.Fitted
	}
	return set
}

// Plan returns the plan of a label on images of h×w×c; a size of 0×0×0 is that of any.
func (s Schedule) Plan(set solver.Settings, label, h, w, c int) (*solver.Plan, error) {
	row, err := s.Row(label)
	if err != nil {
		return nil, err
	}
	set = s.Complete(set)
	set.StatisticsRow = row
	p, err := solver.New(set, s.Schedule, row)
	if err != nil || p.Coordinates == nil || h == 0 {
		return p, err
	}
	if own := p.Coordinates; own.H != h || own.W != w || own.C != c {
		return nil, api.Errorf(api.BadRequest,
			"The statistics of the schedule %q are those of images of %d×%d×%d, the model's have %d×%d×%d",
			s.Name, own.H, own.W, own.C, h, w, c).WithHint("Make a schedule of the model itself.")
	}
	return p, nil
}
