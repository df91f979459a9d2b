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
	Start      *start.Start         // the law of all images, and of each class that the network knows
	Spectrum   *gaussian.Spectrum   // of all images
	References []*frechet.Reference // by which samplers are chosen: frequencies, edges, responses
	// Held are those by which the choice is judged on held-out samples: frequencies, edges, responses of other filters.
	Held []*frechet.Reference
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

// MeasureImages measures a data set in one pass, for a network that knows its classes or not. With an *ImagesError it
// returns all but the references.
func MeasureImages(ctx context.Context, d *data.Dataset, classes bool, report func(done, total int)) (*Images, error) {
	h, w, c := d.Height(), d.Width(), d.Channels()
	law := start.NewEstimator(h, w, c, classes, d.Normalization())
	unbounded := d.Normalization() != nil
	banks := []frechet.Features{frechet.Responses(h, w, c, 0), frechet.Responses(h, w, c, 1)}
	for i := range banks {
		banks[i].Unbounded = unbounded
	}
	all := NewParts(BiasParts, frechet.FrequenciesAndEdges(h, w, c, unbounded)...)
	some := NewParts(BiasParts, banks...)
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
	common, err := ReferencesOf(all)
	if err != nil {
		return out, err
	}
	responses, err := ReferencesOf(some)
	if err != nil {
		return out, err
	}
	out.References, out.Held = append(common, responses[0]), append(slices.Clone(common), responses[1])
	return out, nil
}

// NewParts returns parts without images, of some features. Images are divided among them at random.
func NewParts(parts int, features ...frechet.Features) *sampler.Moments {
	return &sampler.Moments{Parts: frechet.NewParts(parts, features...), Random: true}
}

// ReferencesOf returns the law of the images of all parts by each of their features. Errors are *ImagesError.
func ReferencesOf(m *sampler.Moments) ([]*frechet.Reference, error) {
	out, err := frechet.Parts(m.Parts).References()
	if err != nil {
		return nil, &ImagesError{err}
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
