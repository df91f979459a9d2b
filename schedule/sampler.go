package schedule

// Sampler is the one that a schedule was made for: sampling along it takes this solver where
// no other is asked for.
type Sampler struct {
	Solver string `json:"solver"`
	Order  int    `json:"order,omitempty"` // 0: the solver's usual one
	NFE    int    `json:"nfe"`             // that it was made for
}

// WithSampler returns the schedule with the sampler that it was made for.
func (s *Schedule) WithSampler(of Sampler) *Schedule {
	c := *s
	c.sampler = &of
	return &c
}

// Sampler returns the sampler that the schedule was made for, nil where it serves any.
func (s *Schedule) Sampler() *Sampler {
	if s.sampler == nil {
		return nil
	}
	of := *s.sampler
	return &of
}
