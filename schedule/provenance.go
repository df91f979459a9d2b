package schedule

import (
	"encoding/json"
	"math"
	"time"
)

// Provenance says where a schedule came from. Only Kind is always set; the others may be unknown or have no meaning for
// the kind.
type Provenance struct {
	// Kind is how the schedule was made: a formula's name (edm, log-linear, cosine), geodesic, gaussian, start, fit,
	// few, learned or upload.
	Kind    string  `json:"kind"`
	Dataset *Source `json:"dataset,omitempty"` // that it was measured or trained on
	Model   *Source `json:"model,omitempty"`   // whose network it was made for or with
	// Schedule is the one whose paths it has, of start.
	Schedule string  `json:"schedule,omitempty"`
	Stage    string  `json:"stage,omitempty"` // of learned: isotropic or anisotropic
	Steps    int64   `json:"steps,omitempty"` // of training
	Kimg     float64 `json:"kimg,omitempty"`  // thousands of images trained on
	Seed     *uint64 `json:"seed,omitempty"`
	// EnergyBefore and EnergyAfter are E = T²·(mean trajectory loss) of EDM's schedule and of a geodesic, under the one
	// measured density.
	EnergyBefore *Estimate `json:"energy_before,omitempty"`
	EnergyAfter  *Estimate `json:"energy_after,omitempty"`
	Moved        *Movement `json:"moved,omitempty"` // of learned: since the run began
	// Outcome is what a learned schedule and its network have gained over the run's start, as the server reported it.
	Outcome json.RawMessage `json:"outcome,omitempty"`
	// Few is what was tried for a schedule of kind few, as the server reported it.
	Few json.RawMessage `json:"few,omitempty"`
	// Summary says what the schedule is worth if neither Outcome nor Few does.
	Summary string    `json:"summary,omitempty"`
	Program string    `json:"program,omitempty"` // and its version
	Created time.Time `json:"created,omitzero"`
}

// Source names a data set or a model and has the SHA-256 of its contents in hex.
type Source struct {
	Name string `json:"name"`
	Hash string `json:"hash,omitempty"`
}

// Estimate is a value with its standard error.
type Estimate struct {
	Value  float64 `json:"value"`
	Stderr float64 `json:"stderr"`
}

// Movement says how far training has moved paths, at the noise levels that are visible in an image: σ ≥ 0.02.
type Movement struct {
	LogG  float64 `json:"log_g"` // the largest change of ln g_j, with its sign
	Sigma float64 `json:"sigma"` // √g_j there
	// RatioBefore and RatioAfter are those of two subspaces g_i/g_j, i < j, where they are furthest from 1.
	RatioBefore float64 `json:"ratio_before"`
	RatioAfter  float64 `json:"ratio_after"`
	RatioSigma  float64 `json:"ratio_sigma,omitempty"` // √(g_i g_j)^½ of RatioAfter
}

const visibleSigma = 0.02

// MovedFrom compares the paths with those of a schedule with the same rows, subspaces and knots.
func (s *Schedule) MovedFrom(start *Schedule) *Movement {
	m := &Movement{}
	m.RatioBefore, _ = start.furthestRatio()
	m.RatioAfter, m.RatioSigma = s.furthestRatio()
	for r, row := range s.paths {
		for j, p := range row {
			for k, l := range p.logg {
				sigma := math.Exp(l / 2)
				if d := l - start.paths[r][j].logg[k]; math.Abs(d) > math.Abs(m.LogG) && sigma >= visibleSigma {
					m.LogG, m.Sigma = d, sigma
				}
			}
		}
	}
	return m
}

// furthestRatio returns the ratio g_i/g_j, i < j, that is furthest from 1 at a knot, and the mean σ there. All paths
// have the same knots.
func (s *Schedule) furthestRatio() (ratio, sigma float64) {
	var furthest float64
	for _, row := range s.paths {
		for j, p := range row {
			for _, q := range row[:j] {
				for k := range p.logg {
					mean := math.Exp((q.logg[k] + p.logg[k]) / 4)
					if d := q.logg[k] - p.logg[k]; math.Abs(d) > math.Abs(furthest) && mean >= visibleSigma {
						furthest, sigma = d, mean
					}
				}
			}
		}
	}
	return math.Exp(furthest), sigma
}

// WithProvenance returns the schedule with a provenance.
func (s *Schedule) WithProvenance(p Provenance) *Schedule {
	c := *s
	c.provenance = &p
	return &c
}

// Provenance returns a copy of the provenance, or nil if it is unknown.
func (s *Schedule) Provenance() *Provenance {
	if s.provenance == nil {
		return nil
	}
	p := *s.provenance
	return &p
}

// Sampler is the sampler that version 0.1 made a schedule for.
type Sampler struct {
	Solver string `json:"solver"`
	Order  int    `json:"order,omitempty"` // 0: the solver's usual one
	NFE    int    `json:"nfe"`             // that it was made for
}

// Sampler returns a copy of the sampler that the schedule was made for, or nil if it was made for none.
func (s *Schedule) Sampler() *Sampler {
	if s.sampler == nil {
		return nil
	}
	c := *s.sampler
	return &c
}
