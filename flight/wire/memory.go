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
	Requested, Live, Limit int64 // bytes
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("wire: %d bytes, with %d in use, exceed the limit of %d", e.Requested, e.Live, e.Limit)
}

// Allocator bounds the bytes that are allocated and not freed. A compressed message of a few kilobytes can claim 2⁴⁰
// bytes; with an Allocator its reader fails before it allocates them.
//
// Freed memory may still be read: it belongs to Go's garbage collector. Beyond the limit Allocator panics with
// *TooLarge, because Arrow's interface has no errors; arrow-go's readers recover the panic and return it.
type Allocator struct {
	limit   int64
	live    atomic.Int64
	refused atomic.Pointer[TooLarge]
	mem     memory.GoAllocator
}

var _ memory.Allocator = (*Allocator)(nil)

// NewAllocator returns an allocator of at most limit live bytes.
func NewAllocator(limit int64) *Allocator { return &Allocator{limit: limit} }

// Refused returns the first allocation beyond the limit, nil if there was none.
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

// take counts size bytes in place of old.
func (a *Allocator) take(size, old int64) {
	live := a.live.Add(size - old)
	if size >= 0 && (live <= a.limit || size <= old) {
		return
	}
	a.live.Add(old - size)
	e := &TooLarge{Requested: size, Live: live - size, Limit: a.limit}
	a.refused.CompareAndSwap(nil, e)
	panic(e)
}

// minPooled is the least length of a body in a pool.
const minPooled = 16 << 10

// bodies has pools of memory of received bodies, by the number of bits of the length. The messages of a stream have
// about the same length, so the memory of one mostly fits the next.
var bodies [bits.UintSize + 1]sync.Pool

// newBody returns aligned memory of n bytes with any contents.
func newBody(n int) []byte {
	if n >= minPooled {
		if b, _ := bodies[bits.Len(uint(n))].Get().(*[]byte); b != nil && cap(*b) >= n {
			return (*b)[:n:cap(*b)]
		}
	}
	return memory.DefaultAllocator.Allocate(n)
}

// Recycle lets Codec use the memory of a received body for another one. The caller must not use the body any more.
// Bodies that are not recycled are left to the garbage collector.
func Recycle(body []byte) {
	if cap(body) < minPooled || uintptr(unsafe.Pointer(unsafe.SliceData(body)))%Alignment != 0 {
		return
	}
	bodies[bits.Len(uint(cap(body)))].Put(&body)
}
