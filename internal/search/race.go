package search

import (
	"cmp"
	"math"
	"slices"
)

// The families of candidates, simplest first.
const (
	fromNoise   = iota // a solver's, from noise at the highest level of its own
	fromScaled         // a solver's, from noise of a fitted deviation
	fromLaw            // a solver's, from the law of the data
	fittedOnes         // with coefficients of the network: by its statistics, or fitted
	learnedOnes        // learned through the network
	families
)

// confidence is the number of standard errors of their difference from which a candidate is clearly worse than another.
const confidence = 2

// race measures candidates on more and more latents, all on the same. A candidate leaves after a round if it is clearly
// worse than the leader, or too many are better. The best of each family stays to the end. It returns those that stay.
func race(all []*Candidate, rounds []round, j judge) ([]*Candidate, error) {
	left := slices.Clone(all)
	for i, r := range rounds {
		if i > 0 {
			left = survivors(left, r.most, j)
		}
		for _, c := range left {
			if err := j.measure(c, r.samples); err != nil {
				return left, err
			}
		}
		rank(left)
	}
	return left, nil
}

// round is a round of a race: the latents of each candidate after it, and the most candidates in it, apart from the
// best of each family.
type round struct{ samples, most int }

// judge measures candidates.
type judge interface {
	// measure measures a candidate on the latents up to n.
	measure(c *Candidate, n int) error
	// gain returns the ratio of the scores of c and another candidate on the latents that both were measured on.
	gain(c, other *Candidate) Gain
}

// survivors returns those of ranked candidates that go on.
func survivors(ranked []*Candidate, most int, j judge) (out []*Candidate) {
	var seen [families]bool
	for i, c := range ranked {
		champion := !seen[c.family()] && !math.IsInf(c.score(), 1)
		seen[c.family()] = true
		if champion || i < most && near(c, ranked[0], j) {
			out = append(out, c)
		}
	}
	return out
}

// near reports whether a candidate is not clearly worse than another.
func near(c, other *Candidate, j judge) bool {
	gain := j.gain(c, other)
	return gain.Change <= confidence*gain.Stderr
}

// family returns the family of a candidate.
func (c *Candidate) family() int {
	switch {
	case c.Levels == learnedLevels:
		return learnedOnes
	case !c.plain():
		return fittedOnes
	case c.Matched:
		return fromLaw
	case c.scaled():
		return fromScaled
	}
	return fromNoise
}

// champions returns the best of each family among ranked candidates, the simplest first.
func champions(ranked []*Candidate) (out []*Candidate) {
	var seen [families]bool
	for _, c := range ranked {
		if f := c.family(); !seen[f] {
			seen[f] = true
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *Candidate) int { return cmp.Compare(a.family(), b.family()) })
	return out
}

// contenders returns the ranked candidates that are judged on held-out latents, the simplest first: of the champions
// and the first most those that are not clearly worse than the first, the best plain one, and the one from noise, which
// needs neither data nor a search.
func contenders(ranked []*Candidate, most int, j judge) (out []*Candidate) {
	plain := slices.IndexFunc(ranked, (*Candidate).plain)
	best := champions(ranked)
	for i, c := range ranked {
		champion := slices.Contains(best, c)
		if !champion && (i >= most || c.Samples < ranked[0].Samples) {
			continue
		}
		anyway := champion && (c.family() == fromNoise || i == plain)
		if anyway || near(c, ranked[0], j) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b *Candidate) int { return cmp.Compare(a.family(), b.family()) })
	return out
}

// rank sorts candidates: those measured on more samples first, and among these the best first.
func rank(all []*Candidate) {
	slices.SortStableFunc(all, func(a, b *Candidate) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.score(), b.score()))
	})
}
