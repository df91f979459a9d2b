package wire

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TooLarge is the error of an allocation beyond an Allocator's limit.
type TooLarge struct {
	Asked, Live, Limit int64 // bytes
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("wire: %d bytes beside %d in use exceed the limit of %d", e.Asked, e.Live, e.Limit)
}

// Allocator bounds the bytes that are allocated and not yet freed. A compressed message of a few kilobytes may claim to
// hold 2^40 bytes; with an Allocator its reader stops before the memory is asked for.
//
// What was freed may still be read: the memory belongs to Go's collector. Allocator panics with *TooLarge beyond the
// limit, since Arrow's interface knows no errors; arrow-go's readers recover it into their error.
type Allocator struct {
	limit   int64
	live    atomic.Int64
	refused atomic.Pointer[TooLarge]
	mem     memory.GoAllocator
}

var _ memory.Allocator = (*Allocator)(nil)

// NewAllocator returns an allocator of at most limit live bytes.
func NewAllocator(limit int64) *Allocator { return &Allocator{limit: limit} }

// Live returns the bytes in use.
func (a *Allocator) Live() int64 { return a.live.Load() }

// Refused returns the first allocation that went beyond the limit, nil if none did.
func (a *Allocator) Refused() *TooLarge { return a.refused.Load() }

// Allocate implements memory.Allocator.
func (a *Allocator) Allocate(size int) []byte {
	a.take(int64(size), 0)
	return a.mem.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	a.take(int64(size), int64(len(b)))
	return a.mem.Reallocate(size, b)
}

// Free implements memory.Allocator.
func (a *Allocator) Free(b []byte) {
	a.live.Add(-int64(len(b)))
	a.mem.Free(b)
}

// take counts size bytes in the place of old.
func (a *Allocator) take(size, old int64) {
	live := a.live.Add(size - old)
	if size >= 0 && (live <= a.limit || size <= old) {
		return
	}
	a.live.Add(old - size)
	e := &TooLarge{Asked: size, Live: live - size, Limit: a.limit}
	a.refused.CompareAndSwap(nil, e)
	panic(e)
}

// minPooled is the least length of bodies that are worth keeping.
const minPooled = 16 << 10

// bodies keeps the memory of received bodies for the next ones, by the bits of its length. The messages of a stream are
// about equally long, so what one has left mostly fits another.
var bodies [bits.UintSize + 1]sync.Pool

// newBody returns aligned memory of n bytes, whose contents are to be overwritten.
func newBody(n int) []byte {
	if n >= minPooled {
		if b, _ := bodies[bits.Len(uint(n))].Get().(*[]byte); b != nil && cap(*b) >= n {
			return (*b)[:n:cap(*b)]
		}
	}
	return memory.DefaultAllocator.Allocate(n)
}

// Recycle returns the body of a FlightData that Codec has received, for another one. Nothing may look at it any more.
// Bodies that are not given back belong to the collector.
func Recycle(body []byte) {
	if cap(body) < minPooled || uintptr(unsafe.Pointer(unsafe.SliceData(body)))%Alignment != 0 {
		return
	}
	bodies[bits.Len(uint(cap(body)))].Put(&body)
}
