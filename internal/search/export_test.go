package search

import (
	"context"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Learned returns the coefficients that are learned for a network from noise, before its last step is fitted in bands.
func Learned(ctx context.Context, network sampler.Ensemble, set PairedSettings, rows int) (*solver.Fitted, error) {
	f := &pairedSearch{PairedSettings: set, network: network, latents: rows}
	f.Progress = NewProgress(nil)
	var err error
	if f.path, err = pathToZero(f.T, f.G0); err != nil {
		return nil, err
	}
	if err := f.converge(ctx); err != nil {
		return nil, err
	}
	fitted, err := f.fit(ctx, f.nodes(f.NFE), "", true)
	if err != nil {
		return nil, err
	}
	return fitted.fit.learned(lowestOf(f.G0), nil)
}
