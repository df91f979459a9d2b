package schedules

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// CheckMeasurable bounds the memory and the time that the moments of images of a size take.
func CheckMeasurable(name string, height, width, channels int) error {
	h, w, c := int64(height), int64(width), int64(channels)
	if max(h, w) <= 1<<12 && api.SaturatingProduct(api.SaturatingProduct(h, w), api.SaturatingProduct(c, api.SaturatingProduct(c, c))) <= 1<<26 {
		return nil
	}
	return api.Errorf(api.TooLarge,
		"The images of %q are too large to measure their Gaussian: %d×%d pixels in %d channels", name, h, w, c)
}

// measureStart estimates the law of a data set.
func measureStart(
	ctx context.Context, name string, d *data.Dataset, req api.StartSettings, report func(done, total int),
) (*start.Start, error) {
	if err := CheckMeasurable(name, d.Height(), d.Width(), d.Channels()); err != nil {
		return nil, err
	}
	return search.MeasureStart(ctx, d, req.PerClass == nil || *req.PerClass, report)
}
