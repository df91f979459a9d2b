package processes

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// What a process says of itself in Agree.
const (
	ready = iota
	ended
	failed
)

// ErrEnded is what a process says in Agree that ends as it should: its work is done, or it was told to end.
var ErrEnded = errors.New("the processes end")

// Agree tells the others where this process is, and whether it can go on: mine is nil, [ErrEnded], or what has
// happened. It returns nil where all can and have the same digest of what they are about to do; else mine, where it is
// not nil, or a *[PeerError] about the first of those others. After an error nothing can follow.
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
	said := func(k, field int) uint64 { return binary.LittleEndian.Uint64(words[16*k+8*field:]) }
	for k := range w.size {
		switch said(k, 0) {
		case failed:
			w.stop(&PeerError{Rank: k, Size: w.size, Msg: "has failed; its log says why"})
		case ended:
			w.stop(&PeerError{Rank: k, Size: w.size, Ended: true, Msg: "has ended"})
		}
	}
	for k := range w.size {
		if said(k, 1) != said(0, 1) {
			w.stop(&PeerError{Rank: k, Size: w.size, Msg: "is about to do another step than process 0: its data, noise " +
				"levels, rates or the gradient before differ; all need the same processors, files and version"})
		}
	}
	if mine != nil {
		w.stop(mine)
		return mine
	}
	return w.end
}

// Fact is something that has to be the same in all processes.
type Fact struct{ Name, Value string }

// factBytes is how many bytes of a value are compared.
const factBytes = 96

// Compare returns a *[PeerError] unless all processes have the same facts, of which all have the same names.
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
				w.stop(&PeerError{Rank: k, Size: w.size, Msg: fmt.Sprintf("has another %s than process 0: %q, not %q", f.Name,
					strings.TrimRight(string(theirs), "\x00"), strings.TrimRight(string(first), "\x00"))})
			}
		}
	}
	return w.end
}
