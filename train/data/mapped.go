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
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// mapped is a file of images in the address space, read-only, for as long as it can be reached: whoever holds a part of
// bytes keeps it, too. A file that is removed or replaced meanwhile stays what it was. What has been cut short, or what
// the disk no longer gives, faults where it is read, which is why every reader is guarded.
type mapped struct {
	folder      string // its name
	bytes       []byte
	fileHash    string // the SHA-256 of the bytes, by the folder's manifest; empty where it has none
	contentHash string // the data set's own hash when it was stored

	checking sync.Mutex
	verdict  atomic.Pointer[verdict] // nil: not all images have been read
}

// verdict is what reading a file has shown; err is nil where it is what was written.
type verdict struct{ err error }

// mapFile maps a file of size > 0 bytes.
func mapFile(f *os.File, size int64) (*mapped, error) {
	b, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	m := &mapped{bytes: b}
	runtime.AddCleanup(m, func(b []byte) { _ = syscall.Munmap(b) }, b)
	return m, nil
}

// guard calls read, which reads the images, once they are known to be what was written.
func (d *Dataset) guard(read func()) error {
	if err := d.Check(context.Background()); err != nil {
		return err
	}
	return d.protect(read)
}

// protect calls read, which reads the images. A part of their file that cannot be read is an *[Error] instead of the
// end of the process.
func (d *Dataset) protect(read func()) (err error) {
	defer runtime.KeepAlive(d) // the file stays mapped until read returns
	if d.file == nil {
		read()
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // of this goroutine
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // what the runtime panics with at a fault
			err = d.damaged("cannot be read: it was cut short, or the disk does not give it")
		default:
			panic(r)
		}
	}()
	read()
	return nil
}

// damaged notes that the images are not what was written.
func (d *Dataset) damaged(msg string) error {
	e := &atomicdir.DamageError{Folder: d.file.folder, File: imagesFile, Msg: msg}
	err := &Error{File: e.File, Row: -1, Msg: e.Msg, Err: e}
	d.file.verdict.Store(&verdict{err})
	return err
}

// Checked returns what reading the images has shown so far: done is false until they have all been compared with what
// was written.
func (d *Dataset) Checked() (done bool, err error) {
	if d.file == nil {
		return false, nil
	}
	v := d.file.verdict.Load()
	if v == nil {
		return false, nil
	}
	return true, v.err
}

// Check reads the images of a data set that was loaded, unless it has done so before, and returns an *[Error] where
// they are not what was written. There is nothing to compare where they lie in memory. Whatever reads
// images does so first; an end of ctx ends it here.
func (d *Dataset) Check(ctx context.Context) error {
	if done, err := d.Checked(); done || d.file == nil {
		return err
	}
	d.file.checking.Lock()
	defer d.file.checking.Unlock()
	if done, err := d.Checked(); done {
		return err
	}
	want, sum := d.file.fileHash, d.file.sum
	if want == "" {
		want, sum = d.file.contentHash, d.contentSum
	}
	var got string
	var ended error
	if err := d.protect(func() { got, ended = sum(ctx) }); err != nil || ended != nil {
		return errors.Join(err, ended)
	}
	if got != want {
		return d.damaged("is not what was written: its SHA-256 has changed")
	}
	d.file.verdict.Store(&verdict{})
	return nil
}

// sum returns the SHA-256 of the file, in hex.
func (m *mapped) sum(ctx context.Context) (string, error) {
	sum := &hashWriter{ctx: ctx, Hash: sha256.New()}
	_, err := sum.Write(m.bytes)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Hash returns the SHA-256 of the images and labels in hex. It depends on their type and layout. A stored data set
// knows it since it was written; else it is computed when it is first asked for.
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
