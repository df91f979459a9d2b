package safely

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func TestDo(t *testing.T) {
	if err := Do(func() error { return nil }); err != nil {
		t.Error(err)
	}
	if err := Do(func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	var p *Panic
	err := Do(func() error { panic(io.ErrNoProgress) })
	if !errors.As(err, &p) || !errors.Is(err, io.ErrNoProgress) || !strings.Contains(string(p.Stack), "TestDo") {
		t.Errorf("%v, %+v", err, p)
	}
	var list []int
	if err := Do(func() error { list[3] = 1; return nil }); err == nil ||
		!strings.Contains(err.Error(), "index out of range") {
		t.Error(err)
	}
}

// TestFor: every index has its call, and a panic in a call becomes one of the caller, for every number of cores.
func TestFor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, cores := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(cores)
		for _, n := range []int{0, 1, 5, 100} {
			calls, want := make([]int, n), slices.Repeat([]int{1}, n)
			For(n, func(i int) { calls[i]++ })
			if !slices.Equal(calls, want) {
				t.Errorf("%d cores: calls %v", cores, calls)
			}
		}
		var calls atomic.Int64
		err := Do(func() error {
			For(1<<20, func(i int) {
				calls.Add(1)
				if i == 3 {
					panicking()
				}
			})
			return nil
		})
		p, ok := errors.AsType[*Panic](err)
		if !ok || !errors.Is(p, io.ErrNoProgress) || calls.Load() == 1<<20 {
			t.Errorf("%d cores: %v after %d calls", cores, err, calls.Load())
		} else if !strings.Contains(string(p.Stack), "panicking") {
			t.Errorf("%d cores: the stack is that of another place: %s", cores, p.Stack)
		}
	}
}

//go:noinline
func panicking() { panic(io.ErrNoProgress) }
