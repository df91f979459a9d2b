package data

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

const (
	imagesFile = "images.npy"
	labelsFile = "labels.npy"
	headFile   = "dataset.json"

	storeFormat  = "anisoflight-dataset"
	storeVersion = 1
)

type storeHead struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Layout  Layout `json:"layout"`

	Unbounded bool `json:"unbounded,omitempty"`
}

// Save writes the data set as the folder dir, which appears whole or not at all.
// An existing folder is an error that wraps fs.ErrExist unless replace is true.
func Save(dir string, d *Dataset, replace bool) error {
	return atomicdir.Write(dir, replace, func(dir string) error {
		im := d.images
		images := &Array{Shape: append([]int{d.n}, d.Shape()...), Values: im.Uint8}
		if im.Float32 != nil {
			images.Values = im.Float32
		}
		if err := writeArray(filepath.Join(dir, imagesFile), images); err != nil {
			return err
		}
		if im.Labels != nil {
			if err := writeArray(filepath.Join(dir, labelsFile), &Array{Shape: []int{d.n}, Values: im.Labels}); err != nil {
				return err
			}
		}
		head, err := json.Marshal(storeHead{storeFormat, storeVersion, im.Layout, im.Unbounded})
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, headFile), append(head, '\n'), 0o644)
	})
}

// Load reads the folder dir. What does not make a data set is an *[Error].
func Load(dir string) (*Dataset, error) {
	text, err := os.ReadFile(filepath.Join(dir, headFile))
	if err != nil {
		return nil, err
	}
	var head storeHead
	if err := json.Unmarshal(text, &head); err != nil || head.Format != storeFormat {
		return nil, failf(-1, "%s is not a data set's", headFile)
	}
	if head.Version != storeVersion {
		return nil, failf(-1, "%s has version %d; this program reads version %d", headFile, head.Version, storeVersion)
	}
	images, err := readArray(filepath.Join(dir, imagesFile))
	if err != nil {
		return nil, err
	}
	im, err := imagesOf(images, head.Layout)
	if err != nil {
		return nil, err
	}
	labels, err := readArray(filepath.Join(dir, labelsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if im.Labels, err = labelsOf(labels); err != nil {
			return nil, err
		}
	}
	im.Unbounded = head.Unbounded
	return New(im)
}

// imagesOf takes an array [n, H, W, C] or [n, C, H, W] for images.
func imagesOf(a *Array, layout Layout) (Images, error) {
	im := Images{Layout: layout}
	if len(a.Shape) != 4 {
		return im, failf(-1, "images of shape %v; they have four axes", a.Shape)
	}
	im.Height, im.Width, im.Channels = a.Shape[1], a.Shape[2], a.Shape[3]
	if layout == CHW {
		im.Channels, im.Height, im.Width = a.Shape[1], a.Shape[2], a.Shape[3]
	}
	switch v := a.Values.(type) {
	case []uint8:
		im.Uint8 = v
	case []float32:
		im.Float32 = v
	default:
		return im, failf(-1, "images of type %T; they are uint8 or float32", a.Values)
	}
	return im, nil
}

// labelsOf takes an array [n] of whole numbers for labels.
func labelsOf(a *Array) ([]int32, error) {
	switch v := a.Values.(type) {
	case []int32:
		return v, nil
	case []int64:
		out := make([]int32, len(v))
		for i, x := range v {
			if out[i] = int32(x); int64(out[i]) != x {
				return nil, failf(i, "label %d is too large", x)
			}
		}
		return out, nil
	case []uint8:
		out := make([]int32, len(v))
		for i, x := range v {
			out[i] = int32(x)
		}
		return out, nil
	}
	return nil, failf(-1, "labels of type %T; they are int32 or int64", a.Values)
}

func writeArray(path string, a *Array) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = WriteNPY(w, a)
	return errors.Join(err, w.Flush(), f.Close())
}

func readArray(path string) (*Array, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := ReadNPY(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return a, nil
}
