package batch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
)

// TestClientsTakeTurns: clients take turns one after the other, each client's requests in the order of asking.
func TestClientsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewQueue(1)
		if err := s.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, name := range []string{"many 1", "many 2", "many 3", "few 1", "one 1", "few 2"} {
			client, _, _ := strings.Cut(name, " ")
			go func() {
				_ = s.Take(api.WithClient(t.Context(), client), func() error {
					order = append(order, name) // one slot: nobody else is here
					return nil
				})
			}()
			synctest.Wait()
		}
		if n, _ := s.Load(); n != 6 {
			t.Errorf("%d wait", n)
		}
		s.Release()
		synctest.Wait()
		if want := []string{"many 1", "few 1", "one 1", "many 2", "few 2", "many 3"}; !slices.Equal(order, want) {
			t.Errorf("slots went %v, want %v", order, want)
		}
		if n, taken := s.Load(); n != 0 || taken != 7 || s.free != 1 || len(s.waiting) != 0 || len(s.order) != 0 {
			t.Errorf("%d wait after %d slots; %d free, %v %v", n, taken, s.free, s.waiting, s.order)
		}
	})
}

// TestSlotsOfTheGone: who leaves the queue holds up nobody, also when the slot comes at that moment.
func TestSlotsOfTheGone(t *testing.T) {
	s := NewQueue(2)
	done := make(chan error)
	for i := range 200 {
		ctx, cancel := context.WithCancel(api.WithClient(t.Context(), string(rune('a'+i%5))))
		go func() { done <- s.Take(ctx, func() error { time.Sleep(10 * time.Microsecond); return nil }) }()
		if i%3 == 0 {
			go cancel()
		}
		t.Cleanup(cancel)
	}
	for range 200 {
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if n, _ := s.Load(); n != 0 || s.free != 2 || len(s.waiting) != 0 || len(s.order) != 0 {
		t.Errorf("%d wait, %d free, %v %v", n, s.free, s.waiting, s.order)
	}
}

// TestRequestsGoBeforeBackground: beside a request that uses the device all the time a run in the background gets a
// tenth of the time, and without requests all of it. The clock is that of the test.
func TestRequestsGoBeforeBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step, evaluation, host = 100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond
		q := NewQueue(4)
		steps := 0
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			for {
				if err := q.Yield(ctx); err != nil {
					ended <- err
					return
				}
				_ = q.TakeStep(ctx, func() error { time.Sleep(step); steps++; return nil })
			}
		}()
		time.Sleep(10*step + step/2)
		synctest.Wait()
		if steps != 10 {
			t.Errorf("%d steps in the time of 10, without requests", steps)
		}
		for began := time.Now(); time.Since(began) < 100*step; time.Sleep(host) {
			if err := q.Take(t.Context(), func() error { time.Sleep(evaluation); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if beside := steps - 10; beside < 9 || beside > 11 {
			t.Errorf("%d steps beside requests in the time of 100, want a tenth", beside)
		}
		steps = 0
		time.Sleep(11*step + step/2)
		synctest.Wait()
		if steps < 10 {
			t.Errorf("%d steps in the time of 11 after the last request", steps)
		}
		end()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestAStepThatCompilesHoldsUpNoOther: beside a request that uses the device all the time, the step after a long first
// one comes as soon as others do.
func TestAStepThatCompilesHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const compiling, step, evaluation = 60 * time.Second, 100 * time.Millisecond, 10 * time.Millisecond
		q := NewQueue(4)
		ctx, end := context.WithCancel(t.Context())
		var ended []time.Time
		done := make(chan struct{})
		go func() {
			defer close(done)
			for q.Yield(ctx) == nil {
				_ = q.TakeStep(ctx, func() error {
					if len(ended) == 0 {
						time.Sleep(compiling)
					}
					time.Sleep(step)
					ended = append(ended, time.Now())
					return nil
				})
			}
		}()
		for began := time.Now(); time.Since(began) < compiling+30*step; time.Sleep(time.Millisecond) {
			if err := q.Take(t.Context(), func() error { time.Sleep(evaluation); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		end()
		<-done
		if len(ended) < 3 || ended[2].Sub(ended[0]) > 20*step {
			t.Errorf("steps ended at %v", ended)
		}
	})
}
