package source

import (
	"context"
	"runtime"
)

// decoded is an item with what became of it.
type decoded[T any] struct {
	item  Item
	value T
	err   error
}

// each does work on the items on all cores, and gives the results to take in order. An error
// of an item goes to take with it; an error of take, or of the source, ends it.
func each[T any](ctx context.Context, s *Source, work func(Item) (T, error), take func(i int, item Item, value T, err error) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error                                             // of the source; read after queue is closed
	queue := make(chan chan decoded[T], 2*runtime.GOMAXPROCS(0)) // bounds what is under way
	seats := make(chan struct{}, runtime.GOMAXPROCS(0))
	go func() {
		defer close(queue)
		for item, err := range s.Items() {
			if err != nil {
				failed = err
				return
			}
			done := make(chan decoded[T], 1)
			select {
			case seats <- struct{}{}:
			case <-ctx.Done():
				return
			}
			go func() {
				defer func() { <-seats }()
				value, err := work(item)
				done <- decoded[T]{item, value, err}
			}()
			select {
			case queue <- done:
			case <-ctx.Done():
				return
			}
		}
	}()
	i := 0
	for done := range queue {
		d := <-done
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := take(i, d.item, d.value, d.err); err != nil {
			return err
		}
		i++
	}
	if failed != nil {
		return failed
	}
	return ctx.Err()
}
