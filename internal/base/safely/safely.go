// Package safely makes an error of a panic, so that it ends what it happened in and not the process.
//
// Whatever runs in a goroutine of its own runs in Do: nobody else can recover there.
package safely

import (
	"fmt"
	"runtime/debug"
)

// Panic is a panic that was recovered.
type Panic struct {
	Value any
	Stack []byte // of the goroutine, where it happened
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the error that the panic was called with, if it was one.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Do runs f. A panic in it becomes an error, a *[Panic], which that of [For] is already.
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
