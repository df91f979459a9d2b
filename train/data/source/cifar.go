package source

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/train/data"
)

const (
	cifarSide   = 32
	cifarPixels = 3 * cifarSide * cifarSide
	cifarRecord = 1 + cifarPixels // of a binary batch: the label, then red, green, blue

	// maxBatch bounds the bytes of one batch; CIFAR-10's have 31 million.
	maxBatch = 1 << 26
	// maxBatches bounds their number.
	maxBatches = 64
)

var cifarClasses = []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}

// trainingBatch are the names of the batches to train on. A folder or tar is these;
// test_batch is read when it is named itself.
var trainingBatch = regexp.MustCompile(`^data_batch_[0-9]+(\.bin)?$`)

// batch is one file of CIFAR-10, python's or binary.
type batch struct {
	name string
	read func() ([]byte, error)
}

// rows gives the images of the batch, [n, 3, 32, 32], and their labels.
func (b batch) rows() (pixels []byte, labels []int32, err error) {
	raw, err := b.read()
	if err != nil {
		return nil, nil, err
	}
	if len(raw) > 0 && raw[0] == 0x80 {
		return pickledBatch(raw)
	}
	if len(raw) == 0 || len(raw)%cifarRecord != 0 {
		return nil, nil, fmt.Errorf("%d bytes are no whole number of records of %d", len(raw), cifarRecord)
	}
	for ; len(raw) > 0; raw = raw[cifarRecord:] {
		labels = append(labels, int32(raw[0]))
		pixels = append(pixels, raw[1:cifarRecord]...)
	}
	return pixels, labels, nil
}

// checked is rows, whose labels are classes.
func (b batch) checked(file string) (pixels []byte, labels []int32, err error) {
	if pixels, labels, err = b.rows(); err != nil {
		return nil, nil, failf(file, b.name, "%v", err)
	}
	if len(pixels) != len(labels)*cifarPixels {
		return nil, nil, failf(file, b.name, "%d bytes of pixels for %d labels", len(pixels), len(labels))
	}
	for i, label := range labels {
		if label < 0 || int(label) >= len(cifarClasses) {
			return nil, nil, &data.Error{File: file, Entry: b.name, Row: i, Msg: fmt.Sprintf("label %d; CIFAR-10's are 0 to 9", label)}
		}
	}
	return pixels, labels, nil
}

// openCIFARFiles opens batches that are files, in the order of their names.
func openCIFARFiles(files []string) (*Source, error) {
	slices.Sort(files)
	var batches []batch
	for _, file := range files {
		name := filepath.Base(file)
		if len(files) > 1 && !trainingBatch.MatchString(name) {
			continue
		}
		batches = append(batches, batch{name, func() ([]byte, error) {
			f, err := os.Open(file)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return readAtMost(f, maxBatch)
		}})
	}
	return cifar(filepath.Dir(files[0]), batches)
}

// openCIFARTar opens the batches of a tar, compressed or not. They are read into memory,
// because their order there is arbitrary.
func openCIFARTar(file string) (*Source, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if z, err := gzip.NewReader(f); err == nil {
		r = z
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var batches []batch
	for t := tar.NewReader(r); ; {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, failf(file, "", "is no whole tar: %v", err)
		}
		name := path.Base(head.Name)
		if head.Typeflag != tar.TypeReg || !trainingBatch.MatchString(name) {
			continue
		}
		if len(batches) == maxBatches {
			return nil, failf(file, head.Name, "is batch number %d; CIFAR-10 has 5", len(batches)+1)
		}
		content, err := readAtMost(t, maxBatch)
		if err != nil {
			return nil, failf(file, head.Name, "%v", err)
		}
		batches = append(batches, batch{name, func() ([]byte, error) { return content, nil }})
	}
	slices.SortFunc(batches, func(a, b batch) int { return strings.Compare(a.name, b.name) })
	return cifar(file, batches)
}

// isTar tells a tar by the magic in its first header.
func isTar(r io.ReaderAt) bool {
	magic := make([]byte, 5)
	_, err := r.ReadAt(magic, 257)
	return err == nil && string(magic) == "ustar"
}

func cifar(file string, batches []batch) (*Source, error) {
	if len(batches) == 0 {
		return nil, failf(file, "", "has no file data_batch_1 … of CIFAR-10")
	}
	s := &Source{Format: "CIFAR-10 batches", Labels: true, Classes: cifarClasses}
	for _, b := range batches {
		_, labels, err := b.checked(file)
		if err != nil {
			return nil, err
		}
		s.N += len(labels)
	}
	s.items = func(yield func(Item, error) bool) {
		for _, b := range batches {
			pixels, labels, err := b.checked(file)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for i, label := range labels {
				item := Item{Name: fmt.Sprintf("%s row %d", b.name, i), Label: label, Decode: func() (Picture, error) {
					p := Picture{Height: cifarSide, Width: cifarSide, Channels: 3}
					p.Uint8 = channelsLast(pixels[i*cifarPixels:(i+1)*cifarPixels], p, "CHW")
					return p, nil
				}}
				if !yield(item, nil) {
					return
				}
			}
		}
	}
	return s, nil
}
