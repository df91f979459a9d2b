package search

import (
	"context"
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// Images has what a search needs of a data set.
type Images struct {
	Start      *start.Start         // the law of all images and of each class
	Spectrum   *gaussian.Spectrum   // of all images
	References []*frechet.Reference // frequencies, edges, responses
}

// mostResponses is about the number of images of the reference of the responses: enough to make its error small
// compared with that of samples.
const mostResponses = 10_000

// An ImagesError is returned for a data set that samples cannot be compared with.
type ImagesError struct{ err error }

func (e *ImagesError) Error() string {
	return fmt.Sprintf("images cannot be compared with samples: %v", e.err)
}

// Unwrap returns the cause.
func (e *ImagesError) Unwrap() error { return e.err }

// BiasParts is the number of parts that images are divided into, to know the distance of some of them to all.
const BiasParts = 8

// MeasureImages measures a data set in one pass. With an *ImagesError it returns all but the references.
func MeasureImages(ctx context.Context, d *data.Dataset, report func(done, total int)) (*Images, error) {
	h, w, c := d.Height(), d.Width(), d.Channels()
	law := start.NewEstimator(h, w, c, true, d.Normalization())
	all, some := NewParts(BiasParts, judges(d)...), NewParts(BiasParts, featuresOf(d, frechet.Responses(h, w, c)))
	every, seen := (d.Len()+mostResponses-1)/mostResponses, 0
	err := d.Each(ctx, nil, report, func(labels []int32, images []float64) error {
		pixels := make([]float32, len(images))
		for i, v := range images {
			pixels[i] = float32(v)
		}
		all.Add(0, pixels, nil)
		var chosen []float32
		for image := range slices.Chunk(pixels, h*w*c) {
			if seen%every == 0 {
				chosen = append(chosen, image...)
			}
			seen++
		}
		some.Add(0, chosen, nil)
		return law.Add(labels, images)
	})
	if err != nil {
		return nil, err
	}
	out := &Images{}
	if out.Start, err = law.Start(); err != nil {
		return nil, err
	}
	if out.Spectrum, err = gaussian.NewSpectrum(law.Moments()); err != nil {
		return nil, err
	}
	if out.References, err = ReferencesOf(all); err != nil {
		return out, err
	}
	responses, err := ReferencesOf(some)
	out.References = append(out.References, responses...)
	return out, err
}

// References measures the features by which runs judge samples: the low frequencies and the edges of a data set.
func References(ctx context.Context, d *data.Dataset) ([]*frechet.Reference, error) {
	all := NewParts(1, judges(d)...)
	err := d.Each(ctx, nil, nil, func(_ []int32, images []float64) error {
		for _, s := range all.Parts[0] {
			s.Add(images)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ReferencesOf(all)
}

func judges(d *data.Dataset) []frechet.Features {
	h, w, c := d.Height(), d.Width(), d.Channels()
	return []frechet.Features{featuresOf(d, frechet.Frequencies(h, w, c)), featuresOf(d, frechet.Edges(h, w, c))}
}

// featuresOf returns features for values of a data set.
func featuresOf(d *data.Dataset, f frechet.Features) frechet.Features {
	f.Unbounded = d.Normalization() != nil
	return f
}

// LeaveOut returns the scores of samples x [n, H·W·C] to references, with each of some parts
// left out. Sample i is in part i mod parts.
func LeaveOut(references []*frechet.Reference, x []float32, parts int) []float64 {
	m := partsLike(references, parts)
	m.Add(0, x, nil)
	return leaveOut(references, m)
}

// partsLike returns parts without samples, of the references' features.
func partsLike(references []*frechet.Reference, parts int) *sampler.Moments {
	m := &sampler.Moments{}
	for range parts {
		m.Parts = append(m.Parts, newSamples(references))
	}
	return m
}

// NewParts returns parts without images, of some features. Images are divided among them at random.
func NewParts(parts int, features ...frechet.Features) *sampler.Moments {
	m := &sampler.Moments{Parts: make([][]*frechet.Sample, parts), Random: true}
	for k := range m.Parts {
		for _, f := range features {
			m.Parts[k] = append(m.Parts[k], f.NewSample())
		}
	}
	return m
}

// withoutPart returns the samples of all parts except one; −1 excludes none.
func withoutPart(references []*frechet.Reference, m *sampler.Moments, left int) []*frechet.Sample {
	out := newSamples(references)
	for part, samples := range m.Parts {
		for k, s := range samples {
			if part != left {
				out[k].Merge(s)
			}
		}
	}
	return out
}

func leaveOut(references []*frechet.Reference, m *sampler.Moments) []float64 {
	out := make([]float64, len(m.Parts))
	for left := range out {
		out[left] = distancesOf(references, withoutPart(references, m, left)).score()
	}
	return out
}

func newSamples(references []*frechet.Reference) (out []*frechet.Sample) {
	for _, r := range references {
		out = append(out, r.NewSample())
	}
	return out
}

// ReferencesOf returns the law of the images of all parts by each of their features.
func ReferencesOf(m *sampler.Moments) (out []*frechet.Reference, err error) {
	for k := range m.Parts[0] {
		var samples []*frechet.Sample
		for _, part := range m.Parts {
			samples = append(samples, part[k])
		}
		reference, err := frechet.ReferenceOf(samples...)
		if err != nil {
			return nil, &ImagesError{err}
		}
		out = append(out, reference)
	}
	return out, nil
}

// Spectra measures the Gaussians of some classes of a data set in one pass; −1 is all of it.
func Spectra(ctx context.Context, d *data.Dataset, labels []int, report func(done, total int),
) (map[int]*gaussian.Spectrum, error) {
	moments := map[int]*basis.FrequencyMoments{}
	for _, label := range labels {
		moments[label] = basis.NewFrequencyMoments(d.Height(), d.Width(), d.Channels())
	}
	err := d.Each(ctx, nil, report, func(labels []int32, images []float64) error {
		classes := make([]*basis.FrequencyMoments, len(labels))
		for i, label := range labels {
			if label >= 0 {
				classes[i] = moments[int(label)]
			}
		}
		basis.AddImages(classes, images)
		if all := moments[-1]; all != nil {
			all.Add(images)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	spectra := map[int]*gaussian.Spectrum{}
	for label, m := range moments {
		if spectra[label], err = gaussian.NewSpectrum(m); err != nil {
			return nil, err
		}
	}
	return spectra, nil
}

// MeasureStart estimates the law of a data set in one pass and, if perClass, of each class.
func MeasureStart(ctx context.Context, d *data.Dataset, perClass bool, report func(done, total int),
) (*start.Start, error) {
	e := start.NewEstimator(d.Height(), d.Width(), d.Channels(), perClass, d.Normalization())
	if err := d.Each(ctx, nil, report, e.Add); err != nil {
		return nil, err
	}
	return e.Start()
}
