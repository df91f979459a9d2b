package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// drawn is a judge of candidates whose squared errors are log-normal, with a part that all share by latent.
type drawn struct {
	means  map[*Candidate]float64 // of the logarithm
	shared []float64
}

func (d drawn) measure(c *Candidate, n int) error {
	r := rand.New(rand.NewPCG(math.Float64bits(d.means[c]), uint64(c.Samples)))
	for i := c.Samples; i < n; i++ {
		c.squares = append(c.squares, math.Exp(d.means[c]+2*d.shared[i]+0.3*r.NormFloat64()))
	}
	c.Samples, c.Distances = n, (&pairedSearch{power: 1}).distance(c.squares)
	return nil
}

func (d drawn) gain(c, other *Candidate) Gain { return pairedGain(c.squares, other.squares) }

// The best of many candidates reaches the end of a race although it does not lead the first round, of eight latents, in
// most draws. The best of each family does so, too.
func TestRaceKeepsTheBest(t *testing.T) {
	reached, led := 0, 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := drawn{means: map[*Candidate]float64{}}
		for range 256 {
			d.shared = append(d.shared, r.NormFloat64())
		}
		var all []*Candidate
		for i := range 40 {
			c := &Candidate{Plan: &solver.Plan{}, Solver: []string{"ipndm", fittedName}[i%2], Matched: i%4 == 0}
			d.means[c] = 0.1 + r.Float64()
			all = append(all, c)
		}
		best, poor := all[7], &Candidate{Plan: &solver.Plan{}, Solver: fittedName, Levels: learnedLevels}
		all = append(all, poor)
		d.means[best], d.means[poor] = 0, 5
		left, err := race(all, []round{{8, len(all)}, {64, 16}, {256, 4}}, d)
		if err != nil || !slices.Contains(left, poor) || len(left) > 4+families {
			t.Fatalf("seed %d: %d are left, %v", seed, len(left), err)
		}
		first := slices.Clone(all)
		for _, c := range first {
			c.Distances = (&pairedSearch{power: 1}).distance(c.squares[:8])
			c.Samples = 8
		}
		if rank(first); first[0] == best {
			led++
		}
		if left[0] == best {
			reached++
		}
	}
	if reached < 18 || led > reached-4 {
		t.Errorf("the best wins %d of 20 races, and leads %d after 8 latents", reached, led)
	}
}

// A candidate that is clearly worse leaves, whatever its rank.
func TestSurvivorsAreNotClearlyWorse(t *testing.T) {
	squares := func(factor float64) (out []float64) {
		for i := range 16 {
			out = append(out, factor*math.Exp(float64(i%4)))
		}
		return out
	}
	var all []*Candidate
	for i, factor := range []float64{1, 1.1, 1.2} {
		c := &Candidate{Solver: "ipndm", Samples: 16, squares: squares(factor)}
		if i == 2 { // on some latents it is better
			for k := range c.squares {
				c.squares[k] *= math.Exp(float64(k/4%2) - 0.5)
			}
		}
		c.Distances = (&pairedSearch{power: 1}).distance(c.squares)
		all = append(all, c)
	}
	rank(all)
	left := survivors(all, 16, drawn{})
	if len(left) != 2 || left[1].squares[0] == 1.1 {
		t.Errorf("%d are left", len(left))
	}
}

// Of two alike that are of one family the one that is better by all latents is chosen, whichever led the race; one of
// another family only if its gain is clear.
func TestAllLatentsDecideWithinAFamily(t *testing.T) {
	try := func(name string, race float64) *Candidate {
		return &Candidate{
			Solver: name, Matched: true, Samples: 8, Distances: Distances{race},
			tails: func() ([][]solver.Stage, error) { return nil, nil },
		}
	}
	for _, held := range []struct{ first, second, plain float64 }{
		{1.2, 1, 1.1}, {1, 1.2, 1.1}, {1, 0.97, 1.1},
	} {
		plain, first, second := try("ipndm", 1.1), try(fittedName, 1), try(fittedName, 1.02)
		judged := contenders([]*Candidate{first, second, plain}, 3, equal{})
		if !slices.Equal(judged, []*Candidate{plain, first, second}) {
			t.Fatalf("%d are judged", len(judged))
		}
		scores := map[*Candidate]float64{plain: held.plain, first: held.first, second: held.second}
		gain := func(c, other *Candidate) Gain {
			return Gain{Change: math.Log(scores[c] / scores[other]), Stderr: 0.05}
		}
		var found FewResult
		err := found.choose(judged, func(c *Candidate) error {
			c.HeldOut = Distances{scores[c]}
			return nil
		}, gain, func(c, other *Candidate) bool { return gain(c, other).Clear() })
		if err != nil {
			t.Fatal(err)
		}
		want := map[float64]*Candidate{1: second, 1.2: first, 0.97: second}[held.second]
		if found.Chosen != want || found.Against != plain {
			t.Errorf("with %v %v is chosen", held, found.Chosen.Distances)
		}
	}
	some := []*Candidate{try(fittedName, 1), try(fittedName, 1.02), try("ipndm", 1.1)}
	if judged := contenders(some, 1, equal{}); len(judged) != 2 {
		t.Errorf("%d are judged where only the first may be", len(judged))
	}
}

// equal is a judge to whom all are alike.
type equal struct{}

func (equal) measure(*Candidate, int) error    { return nil }
func (equal) gain(_, _ *Candidate) (none Gain) { return none }

// On an exact mixture, of ten searches the printed ratio of at least nine holds the true one, measured on 200 other
// latents, within two of its errors.
func TestTheRatioHoldsTheTrueOne(t *testing.T) {
	m := ensembletest.Smooth(4, 2)
	held := 0
	for seed := range uint64(10) {
		found, err := Paired(t.Context(), m, Settings{
			NFE: 3, Solvers: []string{"ipndm", "unipc"}, G0: 1e-9, T: 6400, Label: none, Seed: seed, Budget: 4000,
		})
		if err != nil {
			t.Fatal(err)
		}
		path, err := pathToZero(6400, 1e-9)
		if err != nil {
			t.Fatal(err)
		}
		fine, err := plainCandidate(solver.Settings{
			Solver: "heun", Grid: solver.Grid{Kind: solver.GridSigma, Sigma: levelsBetween(80, 0.002, 7, 40)},
		}, path, "")
		if err != nil {
			t.Fatal(err)
		}
		samples := map[*Candidate]sampler.Samples{}
		for _, c := range []*Candidate{found.Chosen, found.Against, fine} {
			labels := slices.Repeat([]int32{-1}, 200)
			var x sampler.Samples
			if err := m.Follow(t.Context(), sampler.Trajectories{Plan: c.Plan, Seed: 1, Labels: labels}, &x); err != nil {
				t.Fatal(err)
			}
			samples[c] = x
		}
		squares := func(c *Candidate) []float64 {
			out := make([]float64, 200)
			for i, v := range samples[c] {
				off := float64(v - samples[fine][i])
				out[i/16] += off * off
			}
			return out
		}
		truth := pairedGain(squares(found.Chosen), squares(found.Against))
		if off := math.Abs(truth.Change - found.Gain.Change); off < 2*math.Hypot(truth.Stderr, found.Gain.Stderr)+1e-9 {
			held++
		}
		t.Logf("seed %d: %s, ln of the ratio %.2f ± %.2f, truly %.2f ± %.2f", seed, found.Chosen.Levels,
			found.Gain.Change, found.Gain.Stderr, truth.Change, truth.Stderr)
	}
	if held < 9 {
		t.Errorf("of 10 ratios %d hold the true one", held)
	}
}

func TestAGainIsClearByTheRaceUnlessHeldOutLatentsDenyIt(t *testing.T) {
	for _, c := range []struct {
		race, held Gain
		want       bool
	}{
		{Gain{-1, 0.2, nil}, Gain{0.1, 0.4, nil}, true},
		{Gain{-1, 0.6, nil}, Gain{0.1, 0.4, nil}, false},
		{Gain{-1, 0.2, nil}, Gain{0.5, 0.4, nil}, false},
		{Gain{1, 0.2, nil}, Gain{-0.5, 0.4, nil}, true},
		{Gain{-1, 0.2, nil}, Gain{math.NaN(), 0.4, nil}, false},
	} {
		if got := clearGain(c.race, c.held); got != c.want {
			t.Errorf("in the race %v, held out %v: %t", c.race, c.held, got)
		}
	}
}
