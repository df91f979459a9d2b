package data

import (
	"slices"
	"testing"
)

// TestOrder: every epoch shows every image once, epochs and seeds differ, and a position does not depend on how it is
// reached.
func TestOrder(t *testing.T) {
	const n = 97
	o := NewOrder(7, n, true)
	var epochs [2][]int
	flips := 0
	for p := range uint64(2 * n) {
		i, flip := o.At(p)
		epochs[p/n] = append(epochs[p/n], i)
		if flip {
			flips++
		}
	}
	if slices.Equal(epochs[0], epochs[1]) {
		t.Error("two epochs have one order")
	}
	if flips < 60 || flips > 134 { // 97 ± 37: five standard deviations
		t.Errorf("%d of %d visits are mirrored", flips, 2*n)
	}
	again := NewOrder(7, n, false)
	for _, p := range []uint64{n + 5, 3, 2*n - 1, 0} {
		i, flip := again.At(p)
		if i != epochs[p/n][p%n] || flip {
			t.Errorf("position %d is image %d, mirrored %v", p, i, flip)
		}
	}
	var other []int
	for p := range uint64(n) {
		i, _ := NewOrder(8, n, false).At(p)
		other = append(other, i)
	}
	if slices.Equal(other, epochs[0]) {
		t.Error("two seeds have one order")
	}
	for _, epoch := range epochs {
		slices.Sort(epoch)
		for i, v := range epoch {
			if v != i {
				t.Fatalf("an epoch visits %v", epoch)
			}
		}
	}
}

// TestBatch: a batch that crosses the end of an epoch is the visits one by one.
func TestBatch(t *testing.T) {
	d := mustNew(t, Images{Height: 1, Width: 2, Channels: 1, Uint8: []uint8{0, 1, 2, 3, 4, 5}, Labels: []int32{0, 1, 2}})
	o := NewOrder(1, d.Len(), true)
	images, labels := make([]float32, 8), make([]int32, 4)
	if err := o.Batch(d, 1, images, labels); err != nil {
		t.Fatal(err)
	}
	one := make([]float32, 2)
	for k := range labels {
		i, flip := o.At(uint64(1 + k))
		if err := d.Image(i, flip, one); err != nil {
			t.Fatal(err)
		}
		if labels[k] != int32(i) || !slices.Equal(one, images[2*k:2*k+2]) {
			t.Errorf("visit %d: label %d, image %v; want image %d, %v", k, labels[k], images[2*k:2*k+2], i, one)
		}
	}
}
