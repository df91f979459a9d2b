package modelbench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Digest is the SHA-256 of all bits that a program computes: of a training step the state that the steps taken so far have
// led to, of every other program its outputs.
func (b *Bench) Digest(ctx context.Context, name string) (string, error) {
	w, err := b.work(ctx, name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if s, ok := w.(*stepWork); ok {
		err = s.digest(ctx, h)
	} else {
		out, failed := w.outputs(ctx)
		for _, t := range out {
			h.Write(t.Data)
		}
		err = failed
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

func (s *stepWork) digest(ctx context.Context, h hash.Hash) error {
	state, err := s.trainer.Export(ctx)
	if err != nil {
		return err
	}
	for _, part := range [][][]float32{state.Params, state.M, state.V, state.EMA} {
		for _, values := range part {
			if err := binary.Write(h, binary.LittleEndian, values); err != nil {
				return err
			}
		}
	}
	return nil
}
