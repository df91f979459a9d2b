// Package safely turns panics into errors, so that a panic does not end the process.
//
// Every new goroutine must run in Do or For, because no other goroutine can recover its panics.
package safely

import (
	"fmt"
	"runtime/debug"
)

// Panic is a panic that was recovered.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the error that the panic was called with, if it was one.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Do calls f and returns its error. It returns a panic of f as a *[Panic].
func Do(f func() error) (err error) {
	defer func() {
		v := recover()
		if p, ok := v.(*Panic); ok {
			err = p
		} else if v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
