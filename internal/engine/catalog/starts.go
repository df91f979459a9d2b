package catalog

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

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
