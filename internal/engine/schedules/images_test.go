package schedules

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

func threeImages(t *testing.T) *data.Dataset {
	t.Helper()
	d, err := data.New(data.Images{
		Height: 1, Width: 2, Channels: 1, Float32: []float32{1, 2, 3, 4, 5, 6}, Labels: []int32{0, 1, 0}, Unbounded: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Each image is read once, for all readers, however many of them each wants.
func TestOnePassServesAllReaders(t *testing.T) {
	var first, labels []int
	var reported []int
	err := pass(t.Context(), threeImages(t), func(done, _ int) { reported = append(reported, done) },
		func(all images) error {
			for label, im := range all {
				first, labels = append(first, int(im[0])), append(labels, label)
			}
			return nil
		},
		func(all images) error {
			for range all {
				break
			}
			return nil
		},
		func(images) error { return nil },
	)
	if err != nil || !slices.Equal(first, []int{1, 3, 5}) || !slices.Equal(labels, []int{0, 1, 0}) {
		t.Errorf("read %v of classes %v, %v", first, labels, err)
	}
	if !slices.Equal(reported, []int{1, 2, 3}) {
		t.Errorf("reported %v", reported)
	}
}

// What a reader returns is returned, and where all have enough no further image is read.
func TestAPassEndsWithItsReaders(t *testing.T) {
	refused := errors.New("refused")
	read := 0
	err := pass(t.Context(), threeImages(t), func(int, int) { read++ }, func(all images) error {
		for range all {
			return refused
		}
		return nil
	})
	if !errors.Is(err, refused) || read != 1 {
		t.Errorf("%v after %d images", err, read)
	}
}

// A pass that was called off returns so, and its readers end.
func TestAPassIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := false
	err := pass(ctx, threeImages(t), func(int, int) { cancel() }, func(all images) error {
		for range all {
		}
		ended = true
		return nil
	})
	if !errors.Is(err, context.Canceled) || !ended {
		t.Errorf("%v, ended %v", err, ended)
	}
}
