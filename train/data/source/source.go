package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/anisoflight/anisoflight/train/data"
)

// Source is the images of a file or folder.
type Source struct {
	Path    string
	Format  string   // in words: "zip of images"
	N       int      // images
	Labels  bool     // images have labels
	Classes []string // names of the classes, where the format has them

	items iter.Seq2[Item, error]
	close func() error
}

// Item is an image of a source, not decoded yet.
type Item struct {
	Name   string // what errors call it
	Label  int32  // −1 for none
	Decode func() (Picture, error)
}

// Picture is a decoded image, [Height, Width, Channels]. Exactly one of Uint8 and Float32
// is set.
type Picture struct {
	Height, Width, Channels int
	Uint8                   []uint8
	Float32                 []float32 // in [−1, 1]
}

// Items gives the images in order, once. An error is the last.
func (s *Source) Items() iter.Seq2[Item, error] { return s.items }

// Close frees what the source holds open.
func (s *Source) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// LabelRule says where labels come from.
type LabelRule string

// The rules. By default labels are those that the format has: dataset.json, an array, a
// column; images in folders without dataset.json have their top-level folder's.
const (
	Auto     LabelRule = "auto"
	ByFolder LabelRule = "folder" // the folder that an image lies in, whatever dataset.json says
	None     LabelRule = "none"
)

// Open finds out what a file or folder is and opens it. What cannot be read is a
// *[data.Error].
func Open(path string, rule LabelRule) (*Source, error) {
	switch rule {
	case "":
		rule = Auto
	case Auto, ByFolder, None:
	default:
		return nil, fmt.Errorf("labels are auto, folder or none, not %q", rule)
	}
	s, err := open(path, rule)
	if err != nil {
		return nil, err
	}
	s.Path = path
	if rule == None {
		s.dropLabels()
	} else if rule == ByFolder && s.Format != folderFormat && s.Format != zipFormat {
		return nil, errors.Join(failf(path, "", "labels by folder are for images in folders; this is a %s", s.Format), s.Close())
	}
	return s, nil
}

func open(path string, rule LabelRule) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		if data.IsStored(path) {
			return openStored(path)
		}
		if batches, err := filepath.Glob(filepath.Join(path, "data_batch_*")); err == nil && len(batches) > 0 {
			return openCIFARFiles(batches)
		}
		return openFolder(path, rule)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 8)
	n, err := io.ReadFull(f, head)
	if err != nil && n == 0 {
		return nil, failf(path, "", "the file is empty")
	}
	head = head[:n]
	starts := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case starts("PK\x03\x04"), starts("PK\x05\x06"):
		return openZip(path, rule)
	case starts("\x1f\x8b"), isTar(f):
		return openCIFARTar(path)
	case starts("PAR1"):
		return openParquet(path)
	case starts("ARROW1"), starts("\xff\xff\xff\xff"):
		return openArrow(path)
	case starts("\x80"), strings.HasSuffix(path, ".bin"):
		return openCIFARFiles([]string{path})
	}
	return nil, failf(path, "", "is of no format that is read: folders and zips of PNG, JPEG or WebP, .npz, CIFAR-10 batches, Parquet, Arrow IPC")
}

// dropLabels takes the labels away.
func (s *Source) dropLabels() {
	items := s.items
	s.Labels, s.Classes = false, nil
	s.items = func(yield func(Item, error) bool) {
		for item, err := range items {
			item.Label = -1
			if !yield(item, err) {
				return
			}
		}
	}
}

// failf makes the error of an entry of a file.
func failf(file, entry, format string, args ...any) error {
	return &data.Error{File: file, Entry: entry, Row: -1, Msg: fmt.Sprintf(format, args...)}
}
