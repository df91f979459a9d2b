package api

import "fmt"

// Summarize sets Summary from the other fields.
func (f *Few) Summarize() {
	describe := func(q FewTry) string {
		return fmt.Sprintf("%s from sigma %.4g (%s start, %s)", q.Solver, q.SigmaMax, q.Start, q.Levels)
	}
	chosen, plain := describe(f.Chosen), describe(f.Against)
	ratio := fmt.Sprintf("%.3g ± %.1g times its Fréchet distance on %d samples", f.Ratio, f.RatioStderr, f.Samples)
	if f.Paired {
		ratio = fmt.Sprintf("%.3g ± %.1g times its error, %.3g ± %.1g times its mean squared error, on %d latents",
			f.Ratio, f.RatioStderr, f.MeanRatio, f.MeanRatioStderr, f.Samples)
	}
	ratio += " held back"
	f.Summary = fmt.Sprintf("%s, %d evaluations: ", chosen, f.Chosen.NFE)
	switch {
	case f.Stopped && f.Chosen.Held == nil:
		f.Summary += "the best when the search was stopped, and not judged"
	case len(f.Tries) == 1:
		f.Summary += "the only try"
	case chosen == plain:
		f.Summary += "no try is clearly better than this plain sampler"
	case f.Ratio+f.RatioStderr < 1:
		f.Summary += fmt.Sprintf("better than the best simpler plain sampler, %s, with %s", plain, ratio)
	default:
		f.Summary += fmt.Sprintf("no try is clearly better than this plain sampler; of the others the best is %s, with %s",
			plain, ratio)
	}
}

// StartScaled is a start of a search, from noise of a fitted deviation. No request has it.
const StartScaled = "scaled"

// Few reports the search of a plan: the Info of plans by MakePlan and OfferNetwork.
type Few struct {
	Model   string `json:"model"`
	Samples int    `json:"samples"` // of each candidate, and held back
	// Paired is true if the search had no images. Distances are then squared errors, and Samples the latents held back.
	Paired bool `json:"paired,omitempty"`
	// Stopped is true if the search was ended early. Chosen is then Tries[0], and Ratio is 1 unless it was measured.
	Stopped bool `json:"stopped,omitempty"`
	// Chosen is, of the best of each family from the simplest on, the last that is better than the one chosen before by a
	// standard error on samples held back. Against is the best plain sampler there of a simpler family, or Chosen.
	Chosen  FewTry   `json:"chosen"`
	Against FewTry   `json:"against"`
	Tries   []FewTry `json:"tries"` // all candidates, the best first; those dropped early are last
	// Ratio is the distance of Chosen over that of Against, means over features as they rank, on samples held back, with
	// its jackknife error. It is 1 if the two are the same.
	Ratio       float64 `json:"ratio"`
	RatioStderr float64 `json:"ratio_stderr"`
	// MeanRatio is, without images, the ratio of the mean squared errors alone. Few latents of large values may decide it.
	MeanRatio       float64 `json:"mean_ratio,omitempty"`
	MeanRatioStderr float64 `json:"mean_ratio_stderr,omitempty"`
	Summary         string  `json:"summary"` // compares the choice with Against, in a sentence
	// Seconds is the duration of each part of the search, on the server that made it.
	Seconds map[string]float64 `json:"seconds,omitempty"`
}

// FewTry is a candidate of the search.
type FewTry struct {
	Solver   string  `json:"solver"`
	NFE      int     `json:"nfe"`
	SigmaMax float64 `json:"sigma_max"`
	// Start is standard, from noise of deviation SigmaMax; scaled, from noise of another deviation; or matched, from the
	// law of the images.
	Start     string  `json:"start"`
	Deviation float64 `json:"deviation,omitempty"` // of a scaled start
	// Analytical is the noise level of an analytical first step, which led to a scaled start: see docs/method.md.
	Analytical float64 `json:"analytical,omitempty"`
	// Levels is the rule of the noise levels: polynomial, EDM's rule to σ = 0.002 with ρ = 7, polynomial 4 or 3, with
	// that ρ; gaussian, chosen for the solver; trajectories, chosen for the network's trajectories; learned, with the
	// coefficients; log-snr; or times, evenly spaced in the network's time.
	Levels string `json:"levels"`
	// Samples is the number of samples measured, fewer than the request's if the candidate was dropped early.
	Samples int `json:"samples"`
	FewDistances
	// Held are the distances on samples held back, of Chosen and Against.
	Held *FewDistances `json:"held,omitempty"`
	// ODEError is the root mean square difference to the converged samples from the same start, of Chosen.
	ODEError float64 `json:"ode_error,omitempty"`
}

// FewDistances are squared Fréchet distances to the data set, less those of as many of its images, over the variance of
// its features: the low frequencies of the DCT, mean absolute differences of neighbouring pixels, and responses of
// random filters in three layers. Candidates are ranked by the geometric mean of the first and of that of the other
// two.
type FewDistances struct {
	Frequencies float64 `json:"frequencies,omitzero"`
	Edges       float64 `json:"edges,omitzero"`
	Responses   float64 `json:"responses,omitzero"`
	// Distance replaces them if the caller has features of its own, or no images. Without images it is the squared
	// difference to the network's converged samples, over the mean square of the samples. Over latents it is
	// the geometric mean of the mean and the geometric mean.
	Distance float64 `json:"distance,omitzero"`
}
