package serve

import (
	"context"
	"io"
)

// untilEOF returns a context that also ends when in does. A pipe ends when nobody holds its other end any more, which
// is how a program hears on every system that the one which started it has ended. What in holds is not looked at.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}
