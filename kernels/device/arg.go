package device

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// Arg is one argument of [Program.Run].
type Arg struct {
	buf    *Buffer
	donate bool
}

// Use passes a buffer that stays live.
func Use(b *Buffer) Arg { return Arg{buf: b} }

// Donated returns the name of a parameter whose argument will be donated. XLA lets an
// output of the same size take over its memory; of a parameter with another name the
// memory is freed, but only after the run. An argument passed with [Use] is copied first.
func Donated(name string) string { return shim.DonorPrefix + name }

// Donate passes a buffer and gives it up: the run may write its outputs over it (see
// [Donated]). Once the run has started the buffer is unusable, even if the run fails.
func Donate(b *Buffer) Arg { return Arg{buf: b, donate: true} }

// fit compares the arguments of a run on a device with the program's parameters.
func fit(key string, dev *Device, want []shapes.Shape, args []Arg) error {
	if len(args) != len(want) {
		return &ArgumentError{Key: key, Index: -1, Err: fmt.Errorf("got %d arguments, want %d", len(args), len(want))}
	}
	for i, a := range args {
		switch {
		case a.buf == nil:
			return &ArgumentError{Key: key, Index: i, Err: errors.New("the buffer is nil")}
		case a.buf.dev != dev:
			return &ArgumentError{Key: key, Index: i, Err: errors.New("the buffer belongs to another device")}
		case !a.buf.shape.Equal(want[i]):
			return &ArgumentError{Key: key, Index: i, Err: fmt.Errorf("got %s, want %s", a.buf.shape, want[i])}
		}
	}
	return nil
}

// lock takes every argument's lock, exclusive for donations, and answers an
// error if one of them is not live. Locks are taken in the order of the buffers'
// ids, so that concurrent runs cannot wait for each other in a circle.
func lock(key string, args []Arg) (unlock func(), err error) {
	order := make([]int, len(args))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(args[i].buf.id, args[j].buf.id), cmp.Compare(i, j))
	})
	for n := 1; n < len(order); n++ {
		i, j := order[n-1], order[n]
		if args[i].buf == args[j].buf && (args[i].donate || args[j].donate) {
			return nil, &ArgumentError{Key: key, Index: j, Err: fmt.Errorf("it is argument %d's buffer again, and donated", i)}
		}
	}
	order = slices.CompactFunc(order, func(i, j int) bool { return args[i].buf == args[j].buf })

	for _, i := range order {
		if args[i].donate {
			args[i].buf.mu.Lock()
		} else {
			args[i].buf.mu.RLock()
		}
	}
	unlock = func() {
		for _, i := range order {
			if args[i].donate {
				args[i].buf.mu.Unlock()
			} else {
				args[i].buf.mu.RUnlock()
			}
		}
	}
	for i, a := range args {
		if err := a.buf.usable(); err != nil {
			unlock()
			return nil, &ArgumentError{Key: key, Index: i, Err: err}
		}
	}
	return unlock, nil
}
