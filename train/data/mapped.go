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
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// mapped is a file of images mapped into memory, read-only, until nothing refers to it. If the file is removed or
// replaced meanwhile, the mapping still has its bytes. If the file is cut short or the disk fails, reading faults:
// every reader is guarded.
type mapped struct {
	folder      string // its name
	bytes       []byte
	fileHash    string // the SHA-256 of the bytes, by the folder's manifest; empty if there is none
	contentHash string // the data set's hash when it was stored

	checking sync.Mutex
	verdict  atomic.Pointer[verdict] // nil: not all images have been read
}

// verdict is the result of reading a file; err is nil if the file is what was written.
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

// guard calls read, which reads the images, after they have been checked.
func (d *Dataset) guard(read func()) error {
	if err := d.Check(context.Background()); err != nil {
		return err
	}
	return d.protect(read)
}

// protect calls read, which reads the images. If a part of their file cannot be read it returns an *[Error]; without
// it the process would end.
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

// damaged records that the images are not what was written.
func (d *Dataset) damaged(msg string) error {
	e := &atomicdir.DamageError{Folder: d.file.folder, File: imagesFile, Msg: msg}
	err := &Error{File: e.File, Row: -1, Msg: e.Msg, Err: e}
	d.file.verdict.Store(&verdict{err})
	return err
}

// Checked reports whether all images have been compared with what was written, and returns the result.
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

// Check compares the images of a data set that was loaded with what was written, once, and returns an *[Error] if they
// differ. Every method that reads images calls it first.
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

// Hash returns the SHA-256 of the images and labels in hex. It depends on their type and layout. That of a stored data
// set was computed when it was written, any other on the first call.
func (d *Dataset) Hash() string { return d.hash() }

// computeHash returns the hash of images in the heap.
func (d *Dataset) computeHash() string {
	sum, _ := d.contentSum(context.Background()) // a context without end
	return sum
}

// contentSum computes the hash of the images and labels. The caller protects it.
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

// newHash begins the hash of a data set with its form; the images, the labels and the normalization follow.
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

// writeValues writes values in little-endian order, piece by piece: binary.Write copies what it is given.
func writeValues[E int32 | float32 | float64](w io.Writer, values []E) error {
	for piece := range slices.Chunk(values, 1<<16) {
		if err := binary.Write(w, binary.LittleEndian, piece); err != nil {
			return err
		}
	}
	return nil
}
