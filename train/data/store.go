package data

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

type storeHead struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Layout  Layout `json:"layout"`

	Unbounded bool   `json:"unbounded,omitempty"`
	Hash      string `json:"hash"` // of Dataset.Hash; the writer has checked the values

	Normalization *normalization.Affine `json:"normalization,omitempty"`
}

// Head returns the path of a file that every data set stored as the folder dir has, and that changes with it.
func Head(dir string) string { return filepath.Join(dir, headFile) }

func readHead(folder *atomicdir.Stored) (storeHead, error) {
	var head storeHead
	text, err := folder.ReadFile(headFile)
	if err != nil {
		return head, err
	}
	err = json.Unmarshal(text, &head)
	switch {
	case err != nil || head.Format != storeFormat:
		err = errorIn(headFile, "is not the head of a data set")
	case head.Version != storeVersion:
		err = errorIn(headFile, "version must be %d, got %d", storeVersion, head.Version)
	case head.Hash == "":
		err = errorIn(headFile, "has no hash of the images and labels")
	}
	return head, err
}

// Load opens the folder dir. It maps the images into memory and checks their size; [Dataset.Check] reads them. The
// folder may be moved, replaced or removed afterwards, but its files must not be changed. A folder that is not a data
// set is an *[Error]; if a file is not what was written, its cause is an *[atomicdir.DamageError].
func Load(dir string) (d *Dataset, err error) {
	err = atomicdir.Read(dir, func(folder *atomicdir.Stored) (err error) {
		d, err = load(folder)
		return err
	})
	var damage *atomicdir.DamageError
	switch {
	case err == nil:
		return d, nil
	case errors.As(err, &damage):
		return nil, &Error{File: damage.File, Row: -1, Msg: damage.Msg, Err: err}
	}
	return nil, err
}

func load(folder *atomicdir.Stored) (*Dataset, error) {
	head, err := readHead(folder)
	if err != nil {
		return nil, err
	}
	if err := folder.CheckSize(imagesFile); err != nil {
		return nil, err
	}
	im, file, err := mapImages(folder.Path(imagesFile), head.Layout)
	if err != nil {
		_, damage := folder.Sum(context.Background(), imagesFile)
		return nil, cmp.Or(damage, err)
	}
	labels, err := folder.ReadFile(labelsFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if im.Labels, err = readLabels(labels); err != nil {
			return nil, err
		}
	}
	im.Unbounded, im.Normalization = head.Unbounded, head.Normalization
	d, err := newDataset(im)
	if err != nil {
		return nil, err
	}
	d.file, file.folder = file, filepath.Base(folder.Path("."))
	file.contentHash, file.fileHash = head.Hash, folder.Hash(imagesFile)
	d.hash = func() string { return head.Hash }
	return d, nil
}

// mapImages maps a file of images, [n, H, W, C] or [n, C, H, W].
func mapImages(path string, layout Layout) (Images, *mapped, error) {
	fail := func(format string, args ...any) (Images, *mapped, error) {
		return Images{}, nil, errorIn(imagesFile, format, args...)
	}
	f, err := os.Open(path)
	if err != nil {
		return Images{}, nil, err
	}
	defer f.Close()
	descr, shape, err := readNPYHeader(f)
	if err != nil {
		return fail("%v", err)
	}
	if len(shape) != 4 {
		return fail("images of shape %v; they have four axes", shape)
	}
	im := Images{Layout: layout, Height: shape[1], Width: shape[2], Channels: shape[3]}
	if layout == CHW {
		im.Channels, im.Height, im.Width = shape[1], shape[2], shape[3]
	}
	n, err := product(shape)
	if err != nil {
		return fail("%v", err)
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return Images{}, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return Images{}, nil, err
	}
	size, ok := map[string]int64{"|u1": 1, "<f4": 4}[descr]
	switch {
	case !ok:
		return fail("images of type %q; they are uint8 or float32", descr)
	case info.Size()-at != int64(n)*size:
		return fail("%d bytes of values; the shape %v takes %d", info.Size()-at, shape, int64(n)*size)
	case n == 0:
		return fail("there must be at least one image")
	}
	file, err := mapFile(f, info.Size())
	if err != nil {
		return Images{}, nil, err
	}
	if size == 1 {
		im.Uint8 = file.bytes[at:]
	} else {
		im.Float32 = floats(file.bytes[at:])
	}
	return im, file, nil
}
