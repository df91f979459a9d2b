package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"runtime"
)

// Hash returns the SHA-256 of the images and labels in hex. It depends on their type
// and layout. A stored data set knows it since it was written; else it is computed when it
// is first asked for.
func (d *Dataset) Hash() string { return d.hash() }

func (d *Dataset) computeHash() string {
	defer runtime.KeepAlive(d)
	sum := newHash(d.Form())
	sum.Write(d.images.Uint8)
	_ = writeValues(sum, d.images.Float32) // a hash never fails
	_ = writeValues(sum, d.images.Labels)
	return hex.EncodeToString(sum.Sum(nil))
}

// newHash begins the hash of a data set: the form, then follow the images, then the labels.
func newHash(f Form) hash.Hash {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %d %d %s float32=%t labels=%t\n", f.Height, f.Width, f.Channels, f.Layout, f.Float, f.Labels)
	return sum
}

// writeValues writes values in little-endian order, piece by piece.
func writeValues[E int32 | float32](w io.Writer, values []E) error {
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
