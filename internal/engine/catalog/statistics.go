package catalog

import (
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

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
