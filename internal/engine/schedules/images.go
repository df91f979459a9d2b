package schedules

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// spectraOf measures the Gaussians of some classes of a data set in one pass; −1 stands for all of it.
func spectraOf(ctx context.Context, d *data.Dataset, labels []int, report func(done, total int),
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

// checkMeasurable bounds the memory and the time that a data set's moments take.
func checkMeasurable(name string, d *data.Dataset) error {
	h, w, c := int64(d.Height()), int64(d.Width()), int64(d.Channels())
	if max(h, w) <= 1<<12 && api.Times(api.Times(h, w), api.Times(c, api.Times(c, c))) <= 1<<26 {
		return nil
	}
	return api.Errorf(api.TooLarge,
		"The images of %q are too large to measure their Gaussian: %d×%d pixels in %d channels", name, h, w, c)
}

// measureStart estimates the law of a data set in one pass.
func measureStart(
	ctx context.Context, name string, d *data.Dataset, req api.StartSettings, report func(done, total int),
) (*start.Start, error) {
	if err := checkMeasurable(name, d); err != nil {
		return nil, err
	}
	perClass := req.PerClass == nil || *req.PerClass
	e := start.NewEstimator(d.Height(), d.Width(), d.Channels(), perClass, d.Normalization())
	if err := d.Each(ctx, nil, report, e.Add); err != nil {
		return nil, err
	}
	return e.Start()
}
