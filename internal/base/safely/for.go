package safely

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// For calls f(0) … f(n−1) on GOMAXPROCS goroutines, in any order, and returns when all calls have returned. f(i) must
// not read what another call writes. If a call panics, For ends early and panics with a *[Panic].
func For(n int, f func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var failed atomic.Pointer[Panic]
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			err := Do(func() error {
				for failed.Load() == nil {
					i := int(next.Add(1)) - 1
					if i >= n {
						break
					}
					f(i)
				}
				return nil
			})
			if p, ok := errors.AsType[*Panic](err); ok {
				failed.CompareAndSwap(nil, p)
			}
		})
	}
	group.Wait()
	if p := failed.Load(); p != nil {
		panic(p)
	}
}
