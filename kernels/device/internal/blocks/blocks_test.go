//go:build cgo && linux

package blocks_test

import (
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/anisoflight/anisoflight/kernels/device/internal/blocks"
	"github.com/anisoflight/anisoflight/kernels/device/internal/blocks/blockstest"
)

const mib = 1 << 20

// served opens a library, checks that it takes its large blocks from malloc until it is served, and begins with none
// kept.
func served(t *testing.T, options ...string) *blockstest.Library {
	t.Helper()
	l := blockstest.Open(t, options...)
	before := blockstest.Count()
	at := l.Posix(64, 8*mib)
	if n := blockstest.Count(); n != before {
		t.Fatalf("a library that is not served changes the counts from %+v to %+v", before, n)
	}
	if !blocks.Serve(l.Handle) {
		t.Fatal("the library is not served")
	}
	l.Give(at) // malloc's, freed after the exchange
	drop(t)
	return l
}

// drop has every kept block unmapped.
func drop(t *testing.T) {
	t.Helper()
	blockstest.Age(61 * time.Second)
	blockstest.Tend()
	if n := blockstest.Count(); n.Kept != 0 {
		t.Fatalf("%+v: blocks are kept beyond their time", n)
	}
}

func bytesAt(at unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(at), n) }

// A freed block serves the next request of its size, or up to a fifth less, at the same address.
func TestFreedBlockServesAgain(t *testing.T) {
	l := served(t)
	for _, c := range []struct {
		name       string
		take       blockstest.Taker
		give       func(unsafe.Pointer)
		size, next int
		same       bool
	}{
		{"same size", l.Posix, l.Give, 8 * mib, 8 * mib, true},
		{"a fifth less", l.C11, l.Give, 10 * mib, 8 * mib, true},
		{"less than that", l.Posix, l.GiveByAddress, 10 * mib, 8*mib - 4096, false},
		{"more", l.C11, l.GiveByAddress, 8 * mib, 8*mib + 1, false},
		{"not of whole pages", l.Posix, l.Give, 8*mib + 1, 8*mib + 17, true},
	} {
		drop(t)
		first := c.take(64, c.size)
		bytesAt(first, c.size)[c.size-1] = 1
		c.give(first)
		second := c.take(64, c.next)
		bytesAt(second, c.next)[c.next-1] = 1
		if same := first == second; same != c.same {
			t.Errorf("%s: %d bytes after %d at the same address: %v, want %v", c.name, c.next, c.size, same, c.same)
		}
		c.give(second)
	}
}

// The smallest block that is large enough is taken.
func TestSmallestThatFits(t *testing.T) {
	l := served(t)
	wide, near := l.Posix(64, 10*mib), l.Posix(64, 9*mib)
	l.Give(wide)
	l.Give(near)
	if at := l.Posix(64, 9*mib-4096); at != near {
		t.Error("a block of 10 MiB was taken where one of 9 was kept")
	} else {
		l.Give(at)
	}
}

// Small blocks, and blocks of an alignment beyond a page, are malloc's.
func TestOthersAreMallocs(t *testing.T) {
	l := served(t)
	before := blockstest.Count()
	for _, c := range []struct{ alignment, size int }{{64, mib - 64}, {64, 4096}, {4096, 4096}, {1 << 16, 8 * mib}} {
		for _, take := range []blockstest.Taker{l.Posix, l.C11} {
			at := take(c.alignment, c.size)
			if at == nil || uintptr(at)%uintptr(c.alignment) != 0 {
				t.Fatalf("%d bytes at a multiple of %d: at %p", c.size, c.alignment, at)
			}
			bytesAt(at, c.size)[c.size-1] = 1
			if n := blockstest.Count(); n.Used != before.Used {
				t.Errorf("%d bytes at a multiple of %d are a block here", c.size, c.alignment)
			}
			l.Give(at)
		}
	}
	l.Give(nil)
}

// A block can be resized and asked for its size as what malloc gives can, and so can what malloc has given.
func TestResize(t *testing.T) {
	l := served(t)
	for _, c := range []struct{ from, to int }{{8 * mib, 16 * mib}, {8 * mib, 6 * mib}, {8 * mib, 100}, {100, 8 * mib}} {
		before := blockstest.Count().Used
		at := l.Posix(64, c.from)
		if n := l.Usable(at); n < c.from {
			t.Errorf("%d bytes may hold %d", c.from, n)
		}
		keep := min(c.from, c.to)
		for i, b := 0, bytesAt(at, keep); i < keep; i++ {
			b[i] = byte(i * 7)
		}
		at = l.Resize(at, c.to)
		if n := l.Usable(at); n < c.to {
			t.Errorf("%d bytes, resized to %d, may hold %d", c.from, c.to, n)
		}
		for i, v := range bytesAt(at, keep) {
			if v != byte(i*7) {
				t.Fatalf("from %d to %d bytes: byte %d is %d", c.from, c.to, i, v)
			}
		}
		l.Give(at)
		if n := blockstest.Count().Used; n != before {
			t.Errorf("from %d to %d bytes: %d blocks in use, %d before", c.from, c.to, n, before)
		}
	}
}

// A size that no address space holds is refused as malloc refuses it.
func TestTooLargeIsRefused(t *testing.T) {
	l := served(t)
	if at := l.Posix(64, 1<<62); at != nil {
		t.Errorf("2⁶² bytes at %p", at)
	}
	if at := l.C11(64, 1<<62); at != nil {
		t.Errorf("2⁶² bytes at %p", at)
	}
}

// The use of a kept block touches no new pages; a new one touches them all.
func TestKeptBlocksDoNotFault(t *testing.T) {
	l := served(t)
	const size = 64 * mib
	pages := size / syscall.Getpagesize()
	use := func() int64 {
		before := blockstest.Faults(t)
		at := l.Posix(64, size)
		b := bytesAt(at, size)
		for i := 0; i < size; i += 4096 {
			b[i]++
		}
		l.Give(at)
		return blockstest.Faults(t) - before
	}
	first := use()
	if first < int64(pages)/20 { // a kernel that maps 16 pages and more at a fault is free to
		t.Errorf("%d faults at first use of %d pages: the test does not measure what it means to", first, pages)
	}
	if again := use(); again > first/10 {
		t.Errorf("%d faults at second use, %d at first", again, first)
	}
}

// The kernel may take a kept block after two seconds, and not before: to offer it costs time, and so does the use of a
// block that was offered.
func TestBlocksAreOfferedLater(t *testing.T) {
	l := served(t)
	const size = 64 * mib
	at := l.Posix(64, size)
	write := func() {
		for i, b := 0, bytesAt(at, size); i < size; i += 4096 {
			b[i] = 1
		}
	}
	for range 2 { // a new block, and one that was offered
		write()
		l.Give(at)
		blockstest.Tend()
		if n := blockstest.Offered(t, at); n != 0 {
			t.Errorf("%d bytes of a block that was freed just now are offered", n)
		}
		blockstest.Age(3 * time.Second)
		blockstest.Tend()
		if n := blockstest.Offered(t, at); n < size*9/10 {
			t.Errorf("%d bytes of %d are offered after three seconds", n, size)
		}
		if again := l.Posix(64, size); again != at {
			t.Fatal("a block that was offered does not serve again")
		}
		blockstest.Age(3 * time.Second)
		blockstest.Tend()
		if write(); blockstest.Offered(t, at) != 0 {
			t.Error("a block in use is offered")
		}
	}
	l.Give(at)
}

// Kept blocks are given back although nobody allocates or frees.
func TestKeptBlocksLeave(t *testing.T) {
	l := served(t)
	l.Give(l.Posix(64, 8*mib))
	if n := blockstest.Count(); n.Kept != 1 {
		t.Fatalf("%+v, want one block kept", n)
	}
	blockstest.Age(61 * time.Second)
	for until := time.Now().Add(20 * time.Second); blockstest.Count().Kept > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("a block is kept beyond its time where nothing else happens")
		}
	}
}

// A request waits for a block of its size that is about to be freed, rather than take new memory.
func TestBlockOnItsWay(t *testing.T) {
	l := served(t)
	const size, tries = 256 * mib, 20
	same := 0
	for range tries {
		first := l.Posix(64, size)
		var second unsafe.Pointer
		var wg sync.WaitGroup
		wg.Go(func() { second = l.Posix(64, size) })
		time.Sleep(time.Millisecond)
		l.Give(first)
		wg.Wait()
		if second == first {
			same++
		}
		l.Give(second)
		drop(t)
	}
	if same < tries/2 {
		t.Errorf("%d of %d requests got the block that was freed a millisecond later", same, tries)
	}
}

// Threads that allocate and free at once never share a block.
func TestManyThreads(t *testing.T) {
	l := served(t)
	before := blockstest.Count()
	var wg sync.WaitGroup
	for id := range byte(8) {
		wg.Go(func() {
			for i := range 200 {
				size := (1 + (i*7+int(id))%5) * mib
				at := l.Posix(64, size)
				b := bytesAt(at, size)
				for j := 0; j < size; j += 1 << 16 {
					b[j] = id + 1
				}
				for j := 0; j < size; j += 1 << 16 {
					if b[j] != id+1 {
						t.Errorf("thread %d finds %d in its block", id, b[j])
						return
					}
				}
				l.Give(at)
			}
		})
	}
	wg.Wait()
	n := blockstest.Count()
	if n.Used != before.Used {
		t.Errorf("%d blocks in use, %d before", n.Used, before.Used)
	}
	if n.Kept > 8*5 {
		t.Errorf("%d blocks kept of 8 threads and 5 sizes", n.Kept)
	}
}

// Libraries are served however they are bound: at once and sealed, sealed in part, or at the first call.
func TestBindings(t *testing.T) {
	for _, options := range [][]string{
		{"-Wl,-z,relro,-z,now"},
		{"-Wl,-z,relro,-z,lazy"},
		{"-Wl,-z,norelro,-z,lazy"},
	} {
		l := served(t, options...)
		at := l.Posix(64, 8*mib)
		if n := blockstest.Count(); n.Used == 0 {
			t.Errorf("%v: a large block was malloc's", options)
		}
		l.GiveByAddress(at)
		at = l.C11(64, 8*mib)
		l.Give(at)
	}
}

// A library that does not allocate is not served.
func TestForeignLibrary(t *testing.T) {
	if blocks.Serve(blockstest.Mathematics(t)) {
		t.Error("the library of mathematics is served")
	}
}
