package wire

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

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
