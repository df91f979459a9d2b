package plans

import (
	"math"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// The result of a search says what was tried and why it was chosen. Of the tries only the choice and its rival have
// what is measured on samples held back. Searches themselves are tested in search, requests for them in Python.
func TestDescribeFew(t *testing.T) {
	try := func(name string, matched bool, distance float64) *search.Candidate {
		d := search.Distances{distance, distance, distance}
		return &search.Candidate{
			Plan: &solver.Plan{NFE: 3}, Solver: name, SigmaMax: 80, Levels: "polynomial", Samples: 64, Matched: matched,
			Distances: d, HeldOut: d, ODEError: 0.5,
		}
	}
	plain, other := try("ipndm", false, 1), try("local", true, 2)
	tries := []*search.Candidate{other, plain}
	for says, r := range map[string]search.FewResult{
		"no try is clearly better than this plain sampler": {Chosen: plain, Against: plain, Tries: tries},
		"the only try": {Chosen: plain, Against: plain, Tries: tries[1:]},
		"no try is clearly better than this plain sampler; of the others the best is ipndm from sigma 80 (": {
			Chosen: other, Against: plain, Tries: tries,
		},
		"better than the best simpler plain sampler, ipndm from sigma 80 (standard start, polynomial), with 0.5 ± 0.05": {
			Chosen: other, Against: plain, Tries: tries, Gain: search.Gain{Change: math.Log(0.5), Stderr: 0.1},
		},
		"with 0.5 ± 0.05 times its error, 2 ± 0.8 times its mean squared error, on 64 latents held back": {
			Chosen: other, Against: plain, Tries: tries, Paired: true, HeldOut: 64,
			Gain: search.Gain{Change: math.Log(0.5), Stderr: 0.1, Mean: &search.Gain{Change: math.Log(2), Stderr: 0.4}},
		},
	} {
		f := Describe("tiny", &r)
		if !strings.HasPrefix(f.Summary, f.Chosen.Solver+" from sigma 80 (") || !strings.Contains(f.Summary, says) {
			t.Errorf("summary %q, want %q", f.Summary, says)
		}
		if math.Abs(math.Log(f.Ratio)-r.Gain.Change) > 1e-12 || f.Chosen.Held == nil ||
			f.Against.Start != api.StartStandard || f.Chosen.ODEError != 0.5 {
			t.Errorf("%+v", f)
		}
		for i, q := range f.Tries {
			if q.Held != nil || q.ODEError != 0 || q.Responses != r.Tries[i].Distances[2] || q.Samples != 64 {
				t.Errorf("try %+v", q)
			}
		}
	}
}
