package schedules

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

// A pass reads every image once and reports each block, until its reader has an error or the context ends.
func TestPass(t *testing.T) {
	d, err := data.New(data.Images{
		Height: 1, Width: 2, Channels: 1, Float32: []float32{1, 2, 3, 4, 5, 6}, Labels: []int32{0, 1, 0}, Unbounded: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var classes, done []int
	var seen []float64
	see := func(labels []int32, images []float64) error {
		for _, label := range labels {
			classes = append(classes, int(label))
		}
		seen = append(seen, images...)
		return nil
	}
	report := func(n, total int) { done = append(done, n, total) }
	if err := pass(t.Context(), d, report, see); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []float64{1, 2, 3, 4, 5, 6}) || !slices.Equal(classes, []int{0, 1, 0}) ||
		!slices.Equal(done, []int{3, 3}) {
		t.Errorf("seen %v of classes %v, reported %v", seen, classes, done)
	}
	done = nil
	refused := errors.New("refused")
	if err := pass(t.Context(), d, report, func([]int32, []float64) error { return refused }); err != refused || done != nil {
		t.Errorf("%v, reported %v", err, done)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pass(ctx, d, report, see); !errors.Is(err, context.Canceled) || len(seen) != 6 {
		t.Errorf("%v after %v", err, seen)
	}
}
