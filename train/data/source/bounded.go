package source

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// maxBuffer bounds the bytes that one buffer of a table may claim.
const maxBuffer = 1 << 30

// bounded allocates no more than maxBuffer at a time. More would end the process, where a
// panic becomes an error (see scan).
type bounded struct{ memory.Allocator }

func (b bounded) Allocate(n int) []byte {
	check(n)
	return b.Allocator.Allocate(n)
}

func (b bounded) Reallocate(n int, old []byte) []byte {
	check(n)
	return b.Allocator.Reallocate(n, old)
}

func check(n int) {
	if n < 0 || n > maxBuffer {
		panic(fmt.Sprintf("a buffer of %d bytes", n))
	}
}

var allocator = bounded{memory.DefaultAllocator}
