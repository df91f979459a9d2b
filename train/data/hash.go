package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
)

// Hash returns the SHA-256 of the images and labels in hex. It depends on their type
// and layout; it is computed when it is first asked for.
func (d *Dataset) Hash() string { return d.hash() }

func (im *Images) hash() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %d %d %s float32=%t labels=%t\n", im.Height, im.Width, im.Channels, im.Layout, im.Float32 != nil, im.Labels != nil)
	sum.Write(im.Uint8)
	hashValues(sum, im.Float32)
	hashValues(sum, im.Labels)
	return hex.EncodeToString(sum.Sum(nil))
}

// hashValues adds values in little-endian order, piece by piece.
func hashValues[E int32 | float32](sum hash.Hash, values []E) {
	const most = 1 << 16
	for len(values) > 0 {
		n := min(most, len(values))
		_ = binary.Write(sum, binary.LittleEndian, values[:n]) // a hash never fails
		values = values[n:]
	}
}
