package batch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
)

// queueUp makes a goroutine wait for a slot, and returns once it does. It appends its name to order and hands the slot
// on.
func queueUp(t *testing.T, s *Queue, order *[]string, client, name string) {
	t.Helper()
	before, _ := s.Load()
	go func() {
		_ = s.Take(api.WithClient(t.Context(), client), func() error {
			*order = append(*order, name) // one slot: nobody else is here
			return nil
		})
	}()
	waitFor(t, func() bool { n, _ := s.Load(); return n == before+1 })
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came to be")
		}
	}
}

// TestClientsTakeTurns: clients take turns one after the other, each client's requests in the order of asking.
func TestClientsTakeTurns(t *testing.T) {
	s := NewQueue(1)
	if err := s.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, w := range [][2]string{
		{"many", "m1"},
		{"many", "m2"},
		{"many", "m3"},
		{"few", "f1"},
		{"one", "o1"},
		{"few", "f2"},
	} {
		queueUp(t, s, &order, w[0], w[1])
	}
	s.Release()
	waitFor(t, func() bool { _, taken := s.Load(); return taken == 7 })
	if err := s.Acquire(t.Context()); err != nil { // the last has left
		t.Fatal(err)
	}
	if want := []string{"m1", "f1", "o1", "m2", "f2", "m3"}; !slices.Equal(order, want) {
		t.Errorf("slots went %v, want %v", order, want)
	}
	if n, taken := s.Load(); n != 0 || taken != 8 || len(s.waiting) != 0 || len(s.order) != 0 {
		t.Errorf("%d wait after %d slots; %v %v", n, taken, s.waiting, s.order)
	}
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
