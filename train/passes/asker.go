package passes

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
)

// NoiseStream is the stream of package latent that the noise of a question's samples is drawn from.
const NoiseStream = streamSample

// Question is a batch of samples for a network that an Asker evaluates.
type Question struct {
	Mode kernels.Mode // of the terms; LossOnly: the residuals alone
	J    int
	Step int64 // of training, from 1; 0 without training

	Images   []int64   // [B] indices of Samples, whose images are sorted by class
	Labels   []int32   // [B], −1 for none
	Noise    []uint64  // [B] seeds: ε of a sample is latent.Normal(seed, NoiseStream, …)
	T        []float64 // [B] times on the schedule; 0 without training
	G, Omega []float64 // [B*J] noise variances g_j and loss weights ω_j
}

// Asker evaluates a network and its derivatives.
type Asker interface {
	// Ask returns the terms of the question's mode at its samples: finite, [B*J] each, the residuals not negative.
	Ask(ctx context.Context, q Question) (*kernels.Terms, error)
}

// ImageAsker evaluates a network.
type ImageAsker interface {
	// AskImages returns flow + ε, [B, H·W·C], of the samples of a question, which has no mode.
	AskImages(ctx context.Context, q Question) ([]float64, error)
}

// Samples describes the images and the noise levels of a network that an Asker evaluates; the images are the client's.
type Samples struct {
	Height, Width, Channels int

	Images int            // number of images
	Counts []int          // number of images of each class, Images in all; nil without classes
	Range  schedule.Range // noise levels that the network was trained on
}

// mostImages bounds the images of Samples: the order of an epoch takes memory for each.
const mostImages = 1 << 26

// Check returns a *[setting.Error] of the first field that cannot be used.
func (s Samples) Check() error {
	total := 0
	for label, n := range s.Counts {
		if n < 0 || n > mostImages {
			return setting.Errorf("counts", "must lie between 0 and %d, got %d of class %d", mostImages, n, label)
		}
		total += n
	}
	switch {
	case s.Counts != nil && total != s.Images:
		return setting.Errorf("counts", "must add up to the %d images, got %d", s.Images, total)
	case s.Images < 1 || s.Images > mostImages:
		return setting.Errorf("images", "must lie between 1 and %d, got %d", mostImages, s.Images)
	}
	return nil
}

// Label returns the class of an image, −1 without classes.
func (s Samples) Label(image int) int32 {
	if s.Counts == nil {
		return -1
	}
	for label, n := range s.Counts {
		if image < n {
			return int32(label)
		}
		image -= n
	}
	return -1
}

// first returns the first image of a class.
func (s Samples) first(label int) (n int) {
	for _, count := range s.Counts[:label] {
		n += count
	}
	return n
}

// CheckAsked validates the arguments of AskGeodesic.
func CheckAsked(s Samples, j int, set GeodesicSettings) error {
	set = set.resolved(s.Range)
	if err := set.check(s.Range, j); err != nil {
		return err
	}
	switch {
	case set.Statistics:
		return setting.Errorf("statistics", "must be left out for a network that is not on the device")
	case set.Family.PerClass && s.Counts == nil:
		return setting.Errorf("counts", "must be given for a schedule per class, got none")
	}
	for label, n := range s.Counts {
		if n == 0 && set.Family.PerClass {
			return setting.Errorf("counts", "must hold images of every class, got none of class %d", label)
		}
	}
	return s.Check()
}

// AskGeodesic is MakeGeodesic for a network that an Asker evaluates, with noise in j subspaces and without statistics.
func AskGeodesic(ctx context.Context, asker Asker, s Samples, j int, set GeodesicSettings) (*Geodesic, error) {
	if err := CheckAsked(s, j, set); err != nil {
		return nil, err
	}
	set = set.resolved(s.Range)
	set.Batch = cmp.Or(set.Batch, 128)
	pools, labels := []int{s.Images}, []int(nil)
	if set.Family.PerClass {
		pools = s.Counts
		for label := range pools {
			labels = append(labels, label)
		}
	}
	p := &progress{report: set.Progress, total: len(pools) * set.Points * set.Samples}
	var measured [][][]schedule.Sample
	for row, n := range pools {
		first := 0
		if set.Family.PerClass {
			first = s.first(row)
		}
		sampler := newSampler(j, n, set.Batch, set.Seed, p)
		sampler.measure = func(ctx context.Context, begin int, g []float64) ([]float64, error) {
			q := Question{Mode: kernels.LossOnly, J: j, G: g, T: make([]float64, len(g)/j)}
			q.Omega = slices.Repeat([]float64{1}, len(g))
			for sample := begin; sample < begin+len(g)/j; sample++ {
				image, _ := sampler.order.At(uint64(sample))
				q.Images = append(q.Images, int64(first+image))
				q.Labels = append(q.Labels, s.Label(first+image))
				q.Noise = append(q.Noise, sampler.noiseSeed(sample))
			}
			terms, err := asker.Ask(ctx, q)
			if err != nil {
				return nil, err
			}
			if len(terms.Residual) != len(g) {
				return nil, fmt.Errorf("passes: %d residuals, want %d", len(terms.Residual), len(g))
			}
			return terms.Residual, nil
		}
		density, err := measureDensity(ctx, &sampler, set)
		if err != nil {
			return nil, err
		}
		measured = append(measured, density)
	}
	return set.geodesic(labels, measured)
}
