package search

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// LevelWithin is levelWithin.
var LevelWithin = levelWithin

// PairedGain is pairedGain.
var PairedGain = pairedGain

// Learned returns the coefficients that are learned for a network from noise, before its last step is fitted in bands.
func Learned(ctx context.Context, network sampler.Ensemble, set Settings, rows int) (k solver.Coefficients, err error) {
	f := &pairedSearch{searcher: newSearcher(network, set), latents: rows}
	if f.path, err = pathToZero(f.T, f.G0); err != nil {
		return k, err
	}
	if err := f.converge(ctx); err != nil {
		return k, err
	}
	fitted, err := f.fit(ctx, f.reference.nodes(f.NFE, startingAt(0)), "", nil)
	if err != nil {
		return k, err
	}
	allowed := math.MaxInt
	return fitted.fit.learnNumbers(learning{
		guided: f.LearnGuidance, lowest: lowestOf(f.G0), allowed: &allowed, progress: func(int) {},
	})
}
