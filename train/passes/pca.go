package passes

import (
	"cmp"
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
)

const (
	// maxPlane bounds H·W of images for components: a covariance takes 8·(H·W)² bytes, its eigenvectors (H·W)³ operations.
	maxPlane = 4096
	// momentBytes bounds the memory of covariances. If the classes need more, there are several passes over the images.
	momentBytes = 1 << 30
)

// PCASettings are the settings of PCA. The zero value of a field means its default.
type PCASettings struct {
	K        int                   // dimensions of P_1 per channel; default H·W/4
	PerClass bool                  // components of the images of each class; default those of all images
	Classes  int                   // per class: the number of classes; default that of the images
	Clusters [][]int               // per class: classes that share components
	Progress func(done, total int) // default none
}

// Span describes one set of components.
type Span struct {
	Labels []int // of the classes that share it; −1 alone for all images
	Images int64 // number of images
	Share  float64
}

// PCA returns the basis whose P_1 is spanned by the leading principal components of the images. They are the components
// of planes, means over the channels, centred by the mean plane. See [basis.Moments.Components] for images that vary in
// fewer than k dimensions.
//
// An error in a setting is a *[setting.Error] of k, clusters or dataset.
func PCA(ctx context.Context, images *data.Dataset, set PCASettings) (*basis.Basis, []Span, error) {
	h, w := images.Height(), images.Width()
	if set.K == 0 {
		set.K = h * w / 4
	}
	switch {
	case h*w > maxPlane:
		return nil, nil, setting.Errorf("dataset", "must have images of at most %d pixels for components, got %d×%d",
			maxPlane, h, w)
	case h*w < 4:
		return nil, nil, setting.Errorf("dataset", "must have images of at least 4 pixels for components, got %d×%d", h, w)
	case set.K < 1 || set.K >= h*w:
		return nil, nil, setting.Errorf("k", "must lie between 1 and %d for images of %d×%d pixels, got %d", h*w-1, h, w,
			set.K)
	case set.Clusters != nil && !set.PerClass:
		return nil, nil, setting.Errorf("clusters", "must be left out unless components are per class, got %v", set.Clusters)
	}
	spans := []Span{{Labels: []int{basis.Shared}}}
	if set.PerClass {
		var err error
		if spans, err = clusters(images, set); err != nil {
			return nil, nil, err
		}
	}
	vectors := make([][][]float64, len(spans))
	bytes := 8 * h * w * (h*w + 512)
	atATime := max(1, momentBytes/bytes)
	passes := (len(spans) + atATime - 1) / atATime
	p := &progress{report: set.Progress, total: passes*images.Len() + len(spans)}
	for from := 0; from < len(spans); from += atATime {
		to := min(from+atATime, len(spans))
		moments, err := measurePlanes(ctx, images, spans[from:to], p)
		if err != nil {
			return nil, nil, err
		}
		for i, m := range moments {
			c, err := leading(ctx, m, set.K)
			if err != nil {
				return nil, nil, err
			}
			moments[i] = nil // its memory is free for the next
			p.add(1)
			vectors[from+i], spans[from+i].Images, spans[from+i].Share = c.Vectors, m.N(), c.Share()
		}
	}
	groups := make([][]int, len(spans))
	for i, s := range spans {
		groups[i] = s.Labels
	}
	b, err := basis.Clusters(h, w, groups, vectors)
	return b, spans, err
}

// leading returns the components of m. The decomposition cannot be stopped: if ctx ends first it goes on in the
// background, and m must not be used again.
func leading(ctx context.Context, m *basis.Moments, k int) (*basis.Components, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type result struct {
		c   *basis.Components
		err error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.err = safely.Do(func() (err error) {
			r.c, err = m.Components(k)
			return err
		})
		done <- r
	}()
	select {
	case r := <-done:
		return r.c, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// measurePlanes returns the moments of the images of each span.
func measurePlanes(ctx context.Context, images *data.Dataset, spans []Span, p *progress) ([]*basis.Moments, error) {
	h, w, c := images.Height(), images.Width(), images.Channels()
	of := map[int32]*basis.Moments{} // by label
	out := make([]*basis.Moments, len(spans))
	for i, s := range spans {
		out[i] = basis.NewMoments(h, w)
		for _, label := range s.Labels {
			of[int32(label)] = out[i]
		}
	}
	all := of[basis.Shared]
	which := []int{}
	for i := range images.Len() {
		if all != nil || of[images.Label(i)] != nil {
			which = append(which, i)
		}
	}
	p.add(images.Len() - len(which))
	plane := make([]float64, h*w)
	return out, images.Each(ctx, which, nil, func(labels []int32, block []float64) error {
		for i, label := range labels {
			for q := range plane {
				plane[q] = 0
				for _, v := range block[(i*h*w+q)*c:][:c] {
					plane[q] += v
				}
				plane[q] /= float64(c)
			}
			cmp.Or(all, of[label]).Add(plane)
		}
		p.add(len(labels))
		return nil
	})
}

// clusters returns the spans of all classes, sorted by their first label. Every class must have images.
func clusters(images *data.Dataset, set PCASettings) ([]Span, error) {
	n := max(set.Classes, images.Classes())
	if n == 0 {
		return nil, setting.Errorf("dataset", "must have a label for each image for components per class, got none")
	}
	count := make([]int, n)
	for i := range images.Len() {
		label := images.Label(i)
		if label < 0 {
			return nil, setting.Errorf("dataset",
				"must have a label for each image for components per class, got none for image %d", i)
		}
		count[label]++
	}
	if empty := slices.Index(count, 0); empty >= 0 {
		return nil, setting.Errorf("dataset",
			"must hold images of every class for components per class, got none of class %d of %d", empty, n)
	}
	taken := make([]bool, n)
	var spans []Span
	for i, labels := range set.Clusters {
		if len(labels) == 0 {
			return nil, setting.Errorf("clusters", "must not be empty, got an empty cluster %d", i)
		}
		for _, label := range labels {
			switch {
			case label < 0 || label >= n:
				return nil, setting.Errorf("clusters", "must hold labels between 0 and %d, got %d in cluster %d", n-1, label, i)
			case taken[label]:
				return nil, setting.Errorf("clusters", "must hold every label once, got %d in two of them", label)
			}
			taken[label] = true
		}
		spans = append(spans, Span{Labels: slices.Sorted(slices.Values(labels))})
	}
	for label, in := range taken {
		if !in {
			spans = append(spans, Span{Labels: []int{label}})
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return a.Labels[0] - b.Labels[0] })
	return spans, nil
}
