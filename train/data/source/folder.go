package source

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
)

const folderFormat = "folder of images"

// openFolder opens a folder of images, in the order of their paths.
func openFolder(dir string, rule LabelRule) (*Source, error) {
	root := os.DirFS(dir)
	var names []string
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case isOtherImage(name):
			return failf(dir, name, "is an image of a kind that is not read: make it a PNG")
		case isImage(name):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var list []byte
	if f, err := root.Open(labelsFile); err == nil {
		list, err = readAtMost(f, maxLabels)
		f.Close()
		if err != nil {
			return nil, failf(dir, labelsFile, "%v", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return images(dir, folderFormat, names, list, rule, func(name string) ([]byte, error) {
		f, err := root.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readAtMost(f, maxEncoded)
	})
}

// images makes a source of encoded images that are read by name.
func images(file, format string, names []string, list []byte, rule LabelRule, read func(name string) ([]byte, error)) (*Source, error) {
	if len(names) == 0 {
		return nil, failf(file, "", "there are no PNG, JPEG or WebP images in it")
	}
	slices.Sort(names)
	labels, classes, err := labelled(file, names, list, rule)
	if err != nil {
		return nil, err
	}
	s := &Source{Format: format, N: len(names), Labels: labels != nil, Classes: classes}
	s.items = func(yield func(Item, error) bool) {
		for i, name := range names {
			item := Item{Name: name, Label: -1, Decode: func() (Picture, error) {
				encoded, err := read(name)
				if err != nil {
					return Picture{}, err
				}
				return decode(encoded)
			}}
			if labels != nil {
				item.Label = labels[i]
			}
			if !yield(item, nil) {
				return
			}
		}
	}
	return s, nil
}

// readAtMost reads all, and no more than most bytes.
func readAtMost(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, errTooLong
	}
	return b, nil
}

var errTooLong = errors.New("is larger than any such file is")
