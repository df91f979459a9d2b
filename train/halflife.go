package train

import (
	"fmt"
	"math"
)

// halflife returns the half-life in kimg of the network's average in a step that begins
// after so many kimg. It is never longer than the part EMARampup of them; as in EDM a
// first step makes the average the network itself.
func (c Config) halflife(kimg float64) float64 {
	if ramp := *c.EMARampup; ramp > 0 {
		return min(c.EMAHalflife, ramp*kimg)
	}
	return c.EMAHalflife
}

// staleShare is the largest share of an average that the start of a run may have without
// a warning.
const staleShare = 0.25

// Stale returns a sentence on the average of a resolved configuration where, after so
// many kimg, too much of it is still the network that the run started from; else "".
// The sentence says what to do.
func (c Config) Stale(kimg float64) string {
	if !*c.TrainNetwork || c.EMARampup != nil && *c.EMARampup > 0 {
		return ""
	}
	share := math.Pow(0.5, kimg/c.EMAHalflife)
	if share <= staleShare {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the averaged network is still what the run started from: ema_halflife_kimg is %g, "+
		"and the run has seen %g kimg; "+
		"train longer, or give a shorter ema_halflife_kimg or ema_rampup 0.05", 100*share, c.EMAHalflife, kimg)
}
