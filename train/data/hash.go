package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/anisoflight/anisoflight/base/normalization"
)

// Hash returns the SHA-256 of the images and labels in hex. It depends on their type
// and layout. A stored data set knows it since it was written; else it is computed when it
// is first asked for.
func (d *Dataset) Hash() string { return d.hash() }

// computeHash returns the hash, empty where a stored file of images cannot be read.
func (d *Dataset) computeHash() (sum string) {
	_ = d.protect(func() { sum, _ = d.contentSum(context.Background()) }) // a context without end
	return sum
}

// contentSum computes the hash of the images and labels. The caller guards it.
func (d *Dataset) contentSum(ctx context.Context) (string, error) {
	sum := &hashWriter{ctx: ctx, Hash: newHash(d.Form())}
	_, err := sum.Write(d.images.Uint8)
	err = errors.Join(err, writeValues(sum, d.images.Float32), writeValues(sum, d.images.Labels),
		writeNormalization(sum, d.images.Normalization))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// hashWriter hashes until its context ends.
type hashWriter struct {
	hash.Hash
	ctx context.Context
}

func (w *hashWriter) Write(b []byte) (n int, err error) {
	const piece = 1 << 22
	for n < len(b) {
		if err := w.ctx.Err(); err != nil {
			return n, err
		}
		end := min(n+piece, len(b))
		w.Hash.Write(b[n:end])
		n = end
	}
	return n, nil
}

// newHash begins the hash of a data set: the form, then follow the images, the labels and the normalization.
func newHash(f Form) hash.Hash {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %d %d %s float32=%t labels=%t\n", f.Height, f.Width, f.Channels, f.Layout, f.Float, f.Labels)
	return sum
}

// writeNormalization ends the hash of a data set that has one.
func writeNormalization(w io.Writer, n *normalization.Affine) error {
	if n == nil {
		return nil
	}
	return errors.Join(writeValues(w, n.Mean), writeValues(w, n.Scale))
}

// writeValues writes values in little-endian order, piece by piece.
func writeValues[E int32 | float32 | float64](w io.Writer, values []E) error {
	const most = 1 << 16
	for len(values) > 0 {
		n := min(most, len(values))
		if err := binary.Write(w, binary.LittleEndian, values[:n]); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}
