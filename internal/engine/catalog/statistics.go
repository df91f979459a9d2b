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

// Parts returns the number of parts in which the stages of a sampler combine: subspaces, or the coordinates of local.
func (s Schedule) Parts(set solver.Settings) int {
	if s.Statistics != nil && (set.Solver == solver.LocalName || set.Solver == solver.FittedName) {
		return s.Statistics.Size()
	}
	return s.J()
}

// Plan returns the plan of a label on images of h×w×c; a size of 0×0×0 is that of any.
func (s Schedule) Plan(set solver.Settings, label, h, w, c int) (*solver.Plan, error) {
	row, err := s.Row(label)
	if err != nil {
		return nil, err
	}
	if s.Statistics != nil {
		set.Statistics, set.StatisticsRow, set.Fitted = s.Statistics.Statistics, row, s.Fitted
	}
	p, err := solver.New(set, s.Schedule, row)
	if err != nil || p.Statistics == nil || h == 0 {
		return p, err
	}
	if sh, sw, sc := p.Statistics.Dims(); sh != h || sw != w || sc != c {
		return nil, api.Errorf(api.BadRequest,
			"The statistics of the schedule %q are those of images of %d×%d×%d, the model's have %d×%d×%d",
			s.Name, sh, sw, sc, h, w, c).WithHint("Make a schedule of the model itself.")
	}
	return p, nil
}
