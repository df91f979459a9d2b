package device

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// Buffer is a tensor on the device. It is live until it is donated or released.
//
// Any number of goroutines may read a live buffer, or run programs on it, at the same time. Donating and releasing wait
// for those readers.
//
// The garbage collector does not see device memory, so call [Buffer.Release] as soon as a buffer is no longer needed. A
// forgotten buffer is freed when the collector finds it unreachable.
type Buffer struct {
	dev   *Device
	id    uint64 // order in which several buffers are locked
	shape shapes.Shape

	mu   sync.RWMutex // shared by readers for the duration of a run or a copy
	gone error        // ErrDonated or ErrReleased; nil while the buffer is live
	raw  backends.Buffer
}

var bufferIDs atomic.Uint64

func newBuffer(d *Device, raw backends.Buffer, shape shapes.Shape) *Buffer {
	d.held.Add(int64(shape.Memory()))
	return &Buffer{dev: d, id: bufferIDs.Add(1), shape: shape, raw: raw}
}

// Upload copies a flat row-major slice of numbers to the device. dims gives its shape; without dims the slice must have
// one value, and the result is a scalar. The caller may change flat after Upload returns.
func (d *Device) Upload(flat any, dims ...int) (*Buffer, error) {
	v := reflect.ValueOf(flat)
	if v.Kind() != reflect.Slice || dtypes.FromGoType(v.Type().Elem()) == dtypes.InvalidDType {
		return nil, fmt.Errorf("device upload: want a slice of numbers, got %T", flat)
	}
	size := 1
	for _, n := range dims {
		size *= max(n, 0)
	}
	if size != v.Len() || size == 0 { // the device keeps no empty tensors
		return nil, fmt.Errorf("device upload: %d values do not fill shape %v of %d", v.Len(), dims, size)
	}
	shape := shapes.Make(dtypes.FromGoType(v.Type().Elem()), dims...)
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	raw, err := d.backend.BufferFromFlatData(d.ordinal, flat, shape)
	if err != nil {
		return nil, fmt.Errorf("device upload of shape %v: %w", dims, err)
	}
	d.up.Add(int64(shape.Memory()))
	return newBuffer(d, raw, shape), nil
}

// Float is the type of numbers that can be uploaded and read in either precision.
type Float interface{ float32 | float64 }

// UploadAs copies values to the device in the given type, float32 or float64.
func UploadAs[T Float](d *Device, dtype dtypes.DType, values []T, dims ...int) (*Buffer, error) {
	if dtype == dtypes.Float64 {
		return d.Upload(converted[float64](values), dims...)
	}
	return d.Upload(converted[float32](values), dims...)
}

// Download copies a buffer to dst, and converts if the types differ.
func Download[T Float](b *Buffer, dst []T) error {
	if b.DType() == dtypes.Float64 {
		return downloadAs[float64](b, dst)
	}
	return downloadAs[float32](b, dst)
}

func downloadAs[S, T Float](b *Buffer, dst []T) error {
	if same, ok := any(dst).([]S); ok {
		return b.Read(same)
	}
	src := make([]S, len(dst))
	err := b.Read(src)
	copy(dst, converted[T](src))
	return err
}

// converted returns values as a slice of T: the same slice if it is one.
func converted[T, S Float](values []S) []T {
	if same, ok := any(values).([]T); ok {
		return same
	}
	out := make([]T, len(values))
	for i, v := range values {
		out[i] = T(v)
	}
	return out
}

// Dims returns the buffer's dimensions.
func (b *Buffer) Dims() []int { return slices.Clone(b.shape.Dimensions) }

// DType returns the type of the buffer's elements.
func (b *Buffer) DType() dtypes.DType { return b.shape.DType }

// Device returns the device on which the buffer lies.
func (b *Buffer) Device() *Device { return b.dev }

// Size returns the number of elements.
func (b *Buffer) Size() int { return b.shape.Size() }

// Live reports whether the buffer can still be used. Another goroutine may release it at any time.
func (b *Buffer) Live() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.gone == nil
}

// Read copies the buffer into dst, a slice of the buffer's element type with [Buffer.Size] elements.
func (b *Buffer) Read(dst any) error {
	if err := b.fits(dst); err != nil {
		return err
	}
	return b.whileLive(func() error {
		return b.dev.backend.BufferToFlatData(b.raw, dst)
	})
}

// View calls use with the buffer's memory as a flat slice (a []float32 for float32), without a copy. use must not
// change the slice or keep it. If the host cannot see the device's memory, View returns [errors.ErrUnsupported]; then
// use Read.
func (b *Buffer) View(use func(flat any) error) error {
	if !b.dev.hostVisible {
		return fmt.Errorf("device %s has no host-visible memory: %w", b.dev.Name(), errors.ErrUnsupported)
	}
	return b.whileLive(func() error {
		flat, err := b.dev.backend.BufferData(b.raw)
		if err != nil {
			return err
		}
		return use(flat)
	})
}

// Release frees the device memory. It waits for readers. It does nothing if the buffer is nil or not live.
func (b *Buffer) Release() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone != nil {
		return
	}
	raw := b.raw
	b.raw, b.gone = nil, ErrReleased
	if b.dev.enter() != nil {
		return // Close has freed it, or is about to
	}
	defer b.dev.leave()
	b.dev.held.Add(-int64(b.shape.Memory()))
	b.dev.free(raw)
	b.dev.trim.Reset(trimDelay)
}

// free releases a buffer's memory. The caller must have entered the device.
func (d *Device) free(raw backends.Buffer) {
	if err := d.backend.BufferFinalize(raw); err != nil {
		d.cfg.Logger.Warn("device buffer was not freed", "error", err)
	}
}

// whileLive runs f if the buffer is live, and keeps it live until f returns.
func (b *Buffer) whileLive(f func() error) (err error) {
	if err := b.dev.enter(); err != nil {
		return err
	}
	defer b.dev.leave()
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.gone != nil {
		return b.gone
	}
	b.dev.down.Add(int64(b.shape.Memory()))
	return f()
}

func (b *Buffer) fits(dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Slice || dtypes.FromGoType(v.Type().Elem()) != b.shape.DType {
		return fmt.Errorf("device read: buffer holds %s, got %T", b.shape.DType, dst)
	}
	if v.Len() != b.Size() {
		return fmt.Errorf("device read: buffer of shape %v holds %d values, got room for %d", b.shape.Dimensions, b.Size(),
			v.Len())
	}
	return nil
}

// Arg is one argument of [Program.Run].
type Arg struct {
	buf    *Buffer
	donate bool
}

// Use passes a buffer that stays live.
func Use(b *Buffer) Arg { return Arg{buf: b} }

// Donated returns the name of a parameter whose argument will be donated. XLA lets an output of the same size take over
// its memory. A donated argument of a parameter with another name is freed after the run; an argument passed with [Use]
// is copied first.
func Donated(name string) string { return shim.DonorPrefix + name }

// Donate passes a buffer and gives it up: the run may write its outputs over it (see [Donated]). After the run has
// started, the buffer cannot be used, even if the run fails.
func Donate(b *Buffer) Arg { return Arg{buf: b, donate: true} }

// fit checks the arguments of a run. A program on several devices has one parameter, and one argument for each device.
func (p *Program) fit(want []shapes.Shape, args []Arg) error {
	owner := func(int) *Device { return p.dev }
	if p.share > 0 {
		want = slices.Repeat(want, p.share)
		owner = func(i int) *Device { return p.dev.devices[i] }
	}
	if len(args) != len(want) {
		return &ProgramError{Key: p.key, Phase: "arguments", Err: fmt.Errorf("got %d, want %d", len(args), len(want))}
	}
	for i, a := range args {
		switch {
		case a.buf == nil:
			return argumentError(p.key, i, errors.New("the buffer is nil"))
		case a.buf.dev != owner(i):
			return argumentError(p.key, i, errors.New("the buffer belongs to another device"))
		case !a.buf.shape.Equal(want[i]):
			return argumentError(p.key, i, fmt.Errorf("got %s, want %s", a.buf.shape, want[i]))
		}
	}
	return nil
}

// lock takes every argument's lock, exclusive for donations, and returns an error if one of them is not live. It locks
// in the order of the buffers' ids, so that concurrent runs cannot deadlock.
func lock(key string, args []Arg) (unlock func(), err error) {
	places := map[*Buffer]int{} // of each buffer's first argument
	var order []Arg
	for i, a := range args {
		first, repeated := places[a.buf]
		switch {
		case !repeated:
			places[a.buf] = i
			order = append(order, a)
		case a.donate || args[first].donate:
			return nil, argumentError(key, i, fmt.Errorf("it is argument %d's buffer again, and donated", first))
		}
	}
	slices.SortFunc(order, func(a, b Arg) int { return cmp.Compare(a.buf.id, b.buf.id) })
	for _, a := range order {
		if a.donate {
			a.buf.mu.Lock()
		} else {
			a.buf.mu.RLock()
		}
	}
	unlock = func() {
		for _, a := range order {
			if a.donate {
				a.buf.mu.Unlock()
			} else {
				a.buf.mu.RUnlock()
			}
		}
	}
	for i, a := range args {
		if gone := a.buf.gone; gone != nil {
			unlock()
			return nil, argumentError(key, i, gone)
		}
	}
	return unlock, nil
}
