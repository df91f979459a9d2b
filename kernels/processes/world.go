package processes

import (
	"context"
	"fmt"
)

// Link joins the processes of a job. One goroutine calls it at a time.
type Link interface {
	// Place returns which process this is, from 0, and how many there are.
	Place() (rank, size int)
	// Exchange sends the k-th of size equal blocks of out to process k, and receives process k's block for this one as
	// the k-th of in, which is as long. The end of ctx may end the waiting; no exchange can follow.
	Exchange(ctx context.Context, out, in []byte) error
}

// World is the processes of one job, as one of them sees it. It belongs to one goroutine.
type World struct {
	link       Link
	rank, size int
	end        error // why nothing can follow; nil while it can
	broken     bool  // the others do not know of it
}

// New returns the world of a link.
func New(link Link) *World {
	w := &World{link: link}
	w.rank, w.size = link.Place()
	return w
}

// Rank returns which process this is, from 0. A nil world has one process.
func (w *World) Rank() int {
	if w == nil {
		return 0
	}
	return w.rank
}

// Size returns how many processes there are.
func (w *World) Size() int {
	if w == nil {
		return 1
	}
	return w.size
}

// Fail notes that this process cannot go on in the middle of what all do together.
func (w *World) Fail(err error) {
	w.stop(err)
	w.broken = true
}

// Broken reports whether the others wait for what does not come, since an exchange or a sum has failed: then the
// process has to end, and the launcher ends the others.
func (w *World) Broken() bool { return w.broken }

// stop notes the first reason why nothing can follow.
func (w *World) stop(err error) {
	if w.end == nil {
		w.end = err
	}
}

// exchange is the link's, after which nothing follows if it fails.
func (w *World) exchange(ctx context.Context, out, in []byte) error {
	if w.end != nil {
		return w.end
	}
	if err := w.link.Exchange(ctx, out, in); err != nil {
		w.Fail(&LostError{Rank: w.rank, Size: w.size, Err: err})
	}
	return w.end
}

// gather gives every process the blocks of all, in the order of their ranks.
func (w *World) gather(ctx context.Context, block []byte) ([]byte, error) {
	out, in := make([]byte, 0, w.size*len(block)), make([]byte, w.size*len(block))
	for range w.size {
		out = append(out, block...)
	}
	return in, w.exchange(ctx, out, in)
}

// EndError is a *LostError or a *PeerError: the processes cannot go on together.
type EndError interface {
	error
	end()
}

func (*LostError) end() {}
func (*PeerError) end() {}

// LostError says that the processes cannot be reached any more.
type LostError struct {
	Rank, Size int // of this process
	Err        error
}

// Error implements the error interface.
func (e *LostError) Error() string {
	return fmt.Sprintf("process %d of %d has lost the others: %v", e.Rank, e.Size, e.Err)
}

// Unwrap returns what the link said.
func (e *LostError) Unwrap() error { return e.Err }

// PeerError says that another process ends, or is not where this one is.
type PeerError struct {
	Rank, Size int // of that process
	Ended      bool
	Msg        string // what it has done, "has failed" for instance
}

// Error implements the error interface.
func (e *PeerError) Error() string { return fmt.Sprintf("process %d of %d %s", e.Rank, e.Size, e.Msg) }
