package schedules

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

// Each image is read once, for all readers, until one has an error or the context ends.
func TestPass(t *testing.T) {
	d, err := data.New(data.Images{
		Height: 1, Width: 2, Channels: 1, Float32: []float32{1, 2, 3, 4, 5, 6}, Labels: []int32{0, 1, 0}, Unbounded: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var seen, done []int
	see := func(label int, image []float64) error {
		seen = append(seen, label, int(image[0]), int(image[1]))
		return nil
	}
	report := func(n, total int) { done = append(done, n, total) }
	if err := pass(t.Context(), d, report, see, see); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []int{0, 1, 2, 0, 1, 2, 1, 3, 4, 1, 3, 4, 0, 5, 6, 0, 5, 6}) ||
		!slices.Equal(done, []int{1, 3, 2, 3, 3, 3}) {
		t.Errorf("seen %v, reported %v", seen, done)
	}
	seen, done = nil, nil
	refused := errors.New("refused")
	err = pass(t.Context(), d, report, func(int, []float64) error { return refused }, see)
	if !errors.Is(err, refused) || seen != nil || done != nil {
		t.Errorf("%v after %v", err, seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = pass(ctx, d, func(int, int) { cancel() }, see)
	if !errors.Is(err, context.Canceled) || len(seen) != 3 {
		t.Errorf("%v after %v", err, seen)
	}
}
