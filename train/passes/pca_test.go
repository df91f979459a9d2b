package passes

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
)

// coloured is three classes of 4×4 images in two channels, of which the mean over the channels of class y varies along
// one direction only: pixel y against pixel y+4.
func coloured(t *testing.T, n int, labels []int32) *data.Dataset {
	t.Helper()
	im := data.Images{Height: 4, Width: 4, Channels: 2, Float32: make([]float32, 32*n), Labels: labels}
	for i := range n {
		label := i % 3
		if labels != nil {
			label = int(labels[i])
		}
		x := im.Float32[32*i : 32*(i+1)]
		a := float32(math.Sin(float64(i))) / 4
		x[2*label], x[2*(label+4)+1] = a, -a // one channel each: their mean has half of it
		x[24], x[25] = a, -a                 // cancels in the mean
	}
	d, err := data.New(im)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func classes(n int) []int32 {
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(i % 3)
	}
	return labels
}

// direction is the unit vector of class y's variation, with a positive largest entry.
func direction(y int) []float64 {
	v := make([]float64, 16)
	v[y], v[y+4] = math.Sqrt(0.5), -math.Sqrt(0.5)
	return v
}

func vectors(t *testing.T, b *basis.Basis, label int) [][]float64 {
	t.Helper()
	v, err := b.Vectors(label)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(slices.Chunk(v, b.H()*b.W()))
}

func TestPCAPerClass(t *testing.T) {
	d := coloured(t, 60, classes(60))
	var told [][2]int
	b, spans, err := PCA(t.Context(), d, PCASettings{
		K: 1, PerClass: true,
		Progress: func(done, total int) { told = append(told, [2]int{done, total}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !b.PerClass() || b.K() != 1 || len(spans) != 3 {
		t.Fatalf("%s, %d spans", b, len(spans))
	}
	for y, span := range spans {
		if span.Labels[0] != y || span.Images != 20 {
			t.Errorf("span %d: %+v", y, span)
		}
		within(t, "share", span.Share, 1, 1e-12)
		for i, v := range vectors(t, b, y)[0] {
			within(t, "vector", v, direction(y)[i], 1e-7)
		}
	}
	if told[len(told)-1] != [2]int{63, 63} {
		t.Errorf("progress %v", told)
	}
	// Together the classes vary in three dimensions, a third of the variance in each.
	all, spans, err := PCA(t.Context(), d, PCASettings{})
	if err != nil || all.PerClass() || all.K() != 4 || spans[0].Images != 60 || spans[0].Labels[0] != basis.Shared {
		t.Fatalf("%v, %+v, %v", all, spans, err)
	}
	for y := range 3 {
		parts := [][]float64{make([]float64, 16), make([]float64, 16)}
		if err := all.Split(basis.Shared, direction(y), parts); err != nil {
			t.Fatal(err)
		}
		for i, v := range parts[0] {
			within(t, "projection", v, direction(y)[i], 1e-7)
		}
	}
}

// Two classes of a cluster share the components of all their images; others have theirs.
func TestPCAOfClusters(t *testing.T) {
	d := coloured(t, 60, classes(60))
	b, spans, err := PCA(t.Context(), d, PCASettings{K: 2, PerClass: true, Clusters: [][]int{{2, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(spans) != 2 || !slices.Equal(spans[0].Labels, []int{0, 2}) || spans[0].Images != 40 ||
		!slices.Equal(spans[1].Labels, []int{1}) {
		t.Fatalf("%+v", spans)
	}
	for _, y := range []int{0, 2} {
		parts := [][]float64{make([]float64, 16), make([]float64, 16)}
		for label, want := range map[int]float64{0: 1, 2: 1, 1: 0} {
			if err := b.Split(label, direction(y), parts); err != nil {
				t.Fatal(err)
			}
			var kept float64
			for _, v := range parts[0] {
				kept += v * v
			}
			if want == 1 {
				within(t, "kept by the cluster", kept, 1, 1e-12)
			} else if kept > 0.9 {
				t.Errorf("class 1 keeps %v of class %d's direction", kept, y)
			}
		}
	}
}

func TestPCARefused(t *testing.T) {
	d := coloured(t, 60, classes(60))
	for name, q := range map[string]struct {
		d     *data.Dataset
		set   PCASettings
		field string
		says  string
	}{
		"k":          {d, PCASettings{K: 16}, "k", "must lie between 1 and 15 for images of 4×4 pixels, got 16"},
		"negative k": {d, PCASettings{K: -1}, "k", "-1"},
		"no labels":  {coloured(t, 6, nil), PCASettings{PerClass: true}, "dataset", "got none"},
		"a class without": {
			coloured(t, 3, []int32{0, 1, 0}),
			PCASettings{PerClass: true, Classes: 3},
			"dataset",
			"got none of class 2 of 3",
		},
		"clusters of all":    {d, PCASettings{Clusters: [][]int{{0}}}, "clusters", "per class"},
		"empty cluster":      {d, PCASettings{PerClass: true, Clusters: [][]int{{}}}, "clusters", "empty cluster 0"},
		"unknown label":      {d, PCASettings{PerClass: true, Clusters: [][]int{{0, 3}}}, "clusters", "got 3 in cluster 0"},
		"label in two":       {d, PCASettings{PerClass: true, Clusters: [][]int{{0, 1}, {1}}}, "clusters", "got 1 in two"},
		"more than there is": {d, PCASettings{PerClass: true, Classes: 5}, "dataset", "got none of class 3 of 5"},
	} {
		_, _, err := PCA(t.Context(), q.d, q.set)
		var bad *setting.Error
		if !errors.As(err, &bad) || bad.Field != q.field || !strings.Contains(bad.Msg, q.says) {
			t.Errorf("%s: %v, want %s: %q", name, err, q.field, q.says)
		}
	}
}
