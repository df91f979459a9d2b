// Package processes lets several processes train as one.
//
// A [Link] joins them, by MPI (package mpi) or, in tests, within one process (package processestest). It has the rank
// of this process and an exchange of bytes. This package has the rest: sums in the order of the processes ([Sum]),
// agreement that all can continue and are at the same step ([World.Agree]), and a comparison of version, data and
// settings ([World.Compare]).
//
// Every process calls the same methods in the same order. If one cannot continue, it says so in the next Agree, and all
// end.
//
// Begin reading with [World].
package processes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Link joins the processes of a job. One goroutine calls it at a time.
type Link interface {
	// Place returns which process this is, from 0, and how many there are.
	Place() (rank, size int)
	// Exchange sends the k-th of size equal blocks of out to process k, and receives process k's block for this one as the
	// k-th of in, which is as long. The end of ctx may end the waiting; no exchange can follow.
	Exchange(ctx context.Context, out, in []byte) error
}

// World represents the processes of one job in one of them. It belongs to one goroutine.
type World struct {
	link       Link
	rank, size int
	end        error // why the processes cannot continue; nil while they can
	broken     bool  // see Broken
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

// Fail notes that this process cannot continue in the middle of an exchange.
func (w *World) Fail(err error) {
	w.stop(err)
	w.broken = true
}

// Broken reports whether an exchange or a sum has failed, so that the others may wait for ever. Then the process must
// end, and the launcher ends the others.
func (w *World) Broken() bool { return w.broken }

// stop notes the first reason why the processes cannot continue.
func (w *World) stop(err error) { w.end = cmp.Or(w.end, err) }

// exchange is the link's. If it fails, the world is broken.
func (w *World) exchange(ctx context.Context, out, in []byte) error {
	if w.end != nil {
		return w.end
	}
	if err := w.link.Exchange(ctx, out, in); err != nil {
		w.Fail(&EndError{Rank: w.rank, Size: w.size, Msg: fmt.Sprintf("has lost the others: %v", err), Lost: err})
	}
	return w.end
}

// Meet waits until all processes call it. It is the last call of each, also after an error, unless the world is broken.
func (w *World) Meet(ctx context.Context) error {
	return w.link.Exchange(ctx, make([]byte, w.size), make([]byte, w.size))
}

// gather gives every process the blocks of all, in the order of their ranks.
func (w *World) gather(ctx context.Context, block []byte) ([]byte, error) {
	in := make([]byte, w.size*len(block))
	return in, w.exchange(ctx, bytes.Repeat(block, w.size), in)
}

// EndError says why the processes cannot continue together: one ends, is at another step, or cannot be reached.
type EndError struct {
	Rank, Size int    // of the process that the message is about
	Msg        string // such as "has failed"
	Ended      bool   // the process has ended regularly
	Lost       error  // the link's error, if the others cannot be reached
}

// Error implements the error interface.
func (e *EndError) Error() string { return fmt.Sprintf("process %d of %d %s", e.Rank, e.Size, e.Msg) }

// Unwrap returns the link's error.
func (e *EndError) Unwrap() error { return e.Lost }

// The state of a process in Agree.
const (
	ready = iota
	ended
	failed
)

// ErrEnded is passed to Agree by a process that ends regularly: its work is done, or it was asked to end.
var ErrEnded = errors.New("the processes end")

// Agree tells the others whether this process can continue: mine is nil, [ErrEnded], or an error. It returns nil if all
// can continue and have the same digest of their next step. Otherwise it returns mine, or if that is nil an *[EndError]
// about the first process that cannot continue or differs. After an error the processes cannot continue.
func (w *World) Agree(ctx context.Context, digest uint64, mine error) error {
	var state uint64 = ready
	switch {
	case errors.Is(mine, ErrEnded):
		state = ended
	case mine != nil:
		state = failed
	}
	word := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, state), digest)
	words, err := w.gather(ctx, word)
	if err != nil {
		return errors.Join(mine, err)
	}
	word64 := func(k, field int) uint64 { return binary.LittleEndian.Uint64(words[16*k+8*field:]) }
	for k := range w.size {
		switch word64(k, 0) {
		case failed:
			w.stop(&EndError{Rank: k, Size: w.size, Msg: "has failed; its log says why"})
		case ended:
			w.stop(&EndError{Rank: k, Size: w.size, Ended: true, Msg: "has ended"})
		}
	}
	for k := range w.size {
		if word64(k, 1) != word64(0, 1) {
			w.stop(&EndError{Rank: k, Size: w.size, Msg: "is about to do another step than process 0: its data, noise " +
				"levels, rates or the gradient before differ; all need the same processors, files and version"})
		}
	}
	if mine != nil {
		w.stop(mine)
		return mine
	}
	return w.end
}

// Fact is a value that must be the same in all processes.
type Fact struct{ Name, Value string }

// factBytes is how many bytes of a value are compared.
const factBytes = 96

// Compare returns a *[EndError] unless all processes have the same facts, of which all have the same names.
func (w *World) Compare(ctx context.Context, facts []Fact) error {
	block := make([]byte, factBytes*len(facts))
	for i, f := range facts {
		copy(block[i*factBytes:(i+1)*factBytes], f.Value)
	}
	all, err := w.gather(ctx, block)
	if err != nil {
		return err
	}
	for k := 1; k < w.size; k++ {
		for i, f := range facts {
			theirs, first := all[k*len(block)+i*factBytes:][:factBytes], all[i*factBytes:][:factBytes]
			if !bytes.Equal(theirs, first) {
				w.stop(&EndError{Rank: k, Size: w.size, Msg: fmt.Sprintf("has another %s than process 0: %q, not %q", f.Name,
					strings.TrimRight(string(theirs), "\x00"), strings.TrimRight(string(first), "\x00"))})
			}
		}
	}
	return w.end
}
