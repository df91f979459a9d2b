package frechet

import (
	"math"

	"github.com/anisoflight/anisoflight/internal/base/safely"
)

// Parts are samples of some images by several features, [part][feature], in parts that can be left out.
type Parts [][]*Sample

// NewParts returns n parts without images.
func NewParts(n int, features ...Features) Parts {
	p := make(Parts, n)
	for k := range p {
		for _, f := range features {
			p[k] = append(p[k], f.NewSample())
		}
	}
	return p
}

// PartsLike returns n parts without images, of the references' features.
func PartsLike(references []*Reference, n int) Parts {
	var features []Features
	for _, r := range references {
		features = append(features, r.features)
	}
	return NewParts(n, features...)
}

// Without returns the samples of all parts except one, by feature; −1 excludes none.
func (p Parts) Without(left int) []*Sample {
	var out []*Sample
	for _, s := range p[0] {
		out = append(out, s.features.NewSample())
	}
	for part, samples := range p {
		for k, s := range samples {
			if part != left {
				out[k].Merge(s)
			}
		}
	}
	return out
}

// References returns the law of the images of all parts by each feature. Errors are those of [ReferenceOf].
func (p Parts) References() ([]*Reference, error) {
	var out []*Reference
	for k := range p[0] {
		var samples []*Sample
		for _, part := range p {
			samples = append(samples, part[k])
		}
		r, err := ReferenceOf(samples...)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// Scores returns the [Score] without each part, on all cores.
func (p Parts) Scores(references []*Reference) []float64 {
	out := make([]float64, len(p))
	safely.For(len(p), func(left int) { out[left] = Score(Distances(references, p.Without(left))) })
	return out
}

// Distances returns [Reference.Excess] of a sample for each reference, on all cores.
func Distances(references []*Reference, samples []*Sample) []float64 {
	out := make([]float64, len(references))
	safely.For(len(out), func(k int) { out[k] = references[k].Excess(samples[k]) })
	return out
}

// Score returns the geometric mean of distances, whatever their scales. The first, by frequencies, counts as much as
// the others together, which all see edges. It is infinite if there are none, or one is NaN.
func Score(distances []float64) float64 {
	if len(distances) == 0 {
		return math.Inf(1)
	}
	s := distances[0]
	if others := distances[1:]; len(others) > 0 {
		s = math.Sqrt(s)
		for _, v := range others {
			s *= math.Pow(v, 0.5/float64(len(others)))
		}
	}
	if math.IsNaN(s) {
		return math.Inf(1)
	}
	return s
}
