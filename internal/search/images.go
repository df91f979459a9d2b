package search

import (
	"context"
	"fmt"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// Images are what a search knows of a data set.
type Images struct {
	Start      *start.Start       // the law of all images and of each class
	Spectrum   *gaussian.Spectrum // of all images
	References []*frechet.Reference
}

// An ImagesError is about a data set that no samples can be compared with.
type ImagesError struct{ err error }

func (e *ImagesError) Error() string {
	return fmt.Sprintf("images cannot be compared with samples: %v", e.err)
}

// Unwrap returns what is wrong with the images.
func (e *ImagesError) Unwrap() error { return e.err }

// MeasureImages measures a data set in one pass.
func MeasureImages(ctx context.Context, d *data.Dataset, report func(done, total int)) (*Images, error) {
	h, w, c := d.Height(), d.Width(), d.Channels()
	law, samples := start.NewEstimator(h, w, c, true, d.Normalization()), judges(d)
	err := d.Each(ctx, nil, report, func(labels []int32, images []float64) error {
		for _, s := range samples {
			s.Add(images)
		}
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
	out.References, err = referencesOf(samples)
	return out, err
}

// References measures the features of a data set by which searches and runs judge samples: the low frequencies and the
// edges.
func References(ctx context.Context, d *data.Dataset) ([]*frechet.Reference, error) {
	samples := judges(d)
	err := d.Each(ctx, nil, nil, func(_ []int32, images []float64) error {
		for _, s := range samples {
			s.Add(images)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return referencesOf(samples)
}

func judges(d *data.Dataset) (out []*frechet.Sample) {
	h, w, c := d.Height(), d.Width(), d.Channels()
	for _, features := range []frechet.Features{frechet.Frequencies(h, w, c), frechet.Edges(h, w, c)} {
		features.Unbounded = d.Normalization() != nil
		out = append(out, features.NewSample())
	}
	return out
}

func referencesOf(samples []*frechet.Sample) (out []*frechet.Reference, err error) {
	for _, s := range samples {
		reference, err := s.Reference()
		if err != nil {
			return nil, &ImagesError{err}
		}
		out = append(out, reference)
	}
	return out, nil
}

// Spectra measures the Gaussians of some classes of a data set in one pass; −1 stands for all of it.
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

// MeasureStart estimates the law of a data set in one pass, of each class too if perClass.
func MeasureStart(ctx context.Context, d *data.Dataset, perClass bool, report func(done, total int),
) (*start.Start, error) {
	e := start.NewEstimator(d.Height(), d.Width(), d.Channels(), perClass, d.Normalization())
	if err := d.Each(ctx, nil, report, e.Add); err != nil {
		return nil, err
	}
	return e.Start()
}
