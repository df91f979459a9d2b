package search

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// searched returns what a search for 3 evaluations finds on a mixture of n normal laws on images of 4×4 pixels, whose
// sampling starts from the law that from makes of the images' own.
func searched(t *testing.T, n int, from func(start.Law) start.Law) *FewResult {
	t.Helper()
	m := ensembletest.Smooth(4, n)
	images, err := MeasureImages(t.Context(), m.Data(t, 400), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	law := from(*images.Start.Law(start.Shared))
	if images.Start, err = start.New(images.Start.Settings(), map[int]*start.Law{start.Shared: &law}); err != nil {
		t.Fatal(err)
	}
	found, err := Few(t.Context(), m, images, Settings{
		NFE: 3, Solvers: []string{"dpmpp2m"}, Samples: 128, G0: schedule.DefaultG0, T: schedule.DefaultT,
		Label: func(int, uint64) int32 { return -1 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestFewTakesASureGain: on normal data the start from their law is exact, and from noise 3 evaluations are not. The
// gain is that of the distances held back, and the start is kept with the choice.
func TestFewTakesASureGain(t *testing.T) {
	found := searched(t, 1, func(l start.Law) start.Law { return l })
	if found.Chosen != found.Tries[0] || !found.Chosen.Matched || found.Start == nil || found.Against.Matched {
		t.Fatalf("chosen %+v against %+v", found.Chosen, found.Against)
	}
	ratio := math.Exp(found.Gain.Change)
	if want := found.Chosen.Held.score() / found.Against.Held.score(); !found.Gain.Certain() || ratio > 0.5 ||
		math.Abs(ratio-want) > 0.2*want || !(found.Gain.Stderr > 0) {
		t.Errorf("gain %+v, the distances are as %g to 1", found.Gain, want)
	}
}

// TestFewHasNothingToGain: where starts from the law of the data do harm, the best try is plain and has nothing to
// gain. Plain tries start from noise at the highest level and its halves.
func TestFewHasNothingToGain(t *testing.T) {
	found := searched(t, 3, func(l start.Law) start.Law {
		l.Mean = slices.Repeat([]float64{1000}, len(l.Mean))
		return l
	})
	if found.Chosen != found.Against || found.Chosen.Matched || found.Start != nil || found.Gain != (Gain{}) ||
		found.Chosen.Held == nil || !(found.Chosen.ODEError > 0) {
		t.Errorf("chosen %+v of gain %+v", found.Chosen, found.Gain)
	}
	var levels []float64
	for _, c := range found.Tries {
		if c.fromNoise() {
			levels = append(levels, c.SigmaMax)
		}
	}
	if slices.Sort(levels); !slices.Equal(levels, []float64{10, 20, 40, 80}) {
		t.Errorf("from noise at %v", levels)
	}
}

// TestFewDoubtsASmallGain: less than two standard errors are not certain, a gain that is the same in all parts is.
func TestFewDoubtsASmallGain(t *testing.T) {
	for gain, want := range map[Gain]bool{
		{-0.1, 0.04}: true, {-0.1, 0}: true,
		{-0.1, 0.06}: false, {0.1, 0}: false, {}: false, {math.NaN(), 0.1}: false,
	} {
		if got := gain.Certain(); got != want {
			t.Errorf("%+v is certain: %v", gain, got)
		}
	}
}
