package schedules

import (
	"context"
	"errors"
	"iter"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// images are those of a data set with their labels. An image is valid until the next one.
type images = iter.Seq2[int, []float32]

// reader measures something of images.
type reader = func(images) error

// pass reads every image of a data set once and hands it to all readers in turn. It returns what a reader returns, or
// that an image could not be read or the context has ended; then readers see no further images.
func pass(ctx context.Context, d *data.Dataset, report func(done, total int), readers ...reader) error {
	im, label := make([]float32, d.Pixels()), 0
	errs := make([]error, len(readers))
	reading := make([]func() (struct{}, bool), 0, len(readers)) // a call lets a reader run until it wants an image
	over := false                                               // no image is to come
	for i, read := range readers {
		next, stop := iter.Pull(func(wait func(struct{}) bool) {
			errs[i] = read(func(yield func(int, []float32) bool) {
				for more := true; more; {
					more = wait(struct{}{}) && !over && yield(label, im)
				}
			})
		})
		defer stop()
		reading = append(reading, next)
	}
	for i := 0; ; i++ {
		waiting := false
		for _, next := range reading {
			_, more := next()
			waiting = waiting || more
		}
		if !waiting {
			return errors.Join(errs...)
		}
		if over = i == d.Len(); over {
			continue
		}
		if err := errors.Join(d.Image(i, false, im), ctx.Err()); err != nil {
			return err
		}
		label = int(d.Label(i))
		report(i+1, d.Len())
	}
}

// measured returns the law of a data set, or of one class of it; −1 stands for all.
func measured[L any](ctx context.Context, d *data.Dataset, label int, report func(done, total int), measure measure[L],
) (law L, err error) {
	err = pass(ctx, d, report, lawReader(&law, d, label, measure))
	return law, err
}

// measure takes the moments of images [H, W, C].
type measure[L any] func(h, w, c int, images iter.Seq[[]float32]) (L, error)

// lawReader returns the reader that measures the images of a class, or of all, into *law.
func lawReader[L any](law *L, d *data.Dataset, label int, measure measure[L]) reader {
	return func(all images) (err error) {
		*law, err = measure(d.Height(), d.Width(), d.Channels(), func(yield func([]float32) bool) {
			for of, im := range all {
				if (label < 0 || of == label) && !yield(im) {
					return
				}
			}
		})
		return err
	}
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
) (s *start.Start, err error) {
	if err := checkMeasurable(name, d); err != nil {
		return nil, err
	}
	err = pass(ctx, d, report, startReader(&s, d, req))
	return s, err
}

// startReader returns the reader that estimates the law of images into *s.
func startReader(s **start.Start, d *data.Dataset, req api.StartSettings) reader {
	set := start.Settings{
		Covariance: req.Covariance, Rank: req.Rank, Cuts: req.Cuts, PerClass: true, Units: d.Normalization(),
	}
	if req.PerClass != nil {
		set.PerClass = *req.PerClass
	}
	if nu := req.Shrinkage; nu != nil {
		if set.Shrinkage = *nu; set.Shrinkage == 0 {
			set.Shrinkage = -1
		}
	}
	return func(all images) (err error) {
		*s, err = start.Measure(d.Height(), d.Width(), d.Channels(), all, set)
		return err
	}
}
