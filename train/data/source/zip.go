package source

import (
	"archive/zip"
	"path"
	"path/filepath"
	"strings"
)

const zipFormat = "zip of images"

// openZip opens a zip of images, or a .npz, which is one of arrays.
func openZip(file string, rule LabelRule) (*Source, error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, failf(file, "", "is no whole zip: %v", err)
	}
	s, err := openArchive(file, z, rule)
	if err != nil {
		_ = z.Close()
		return nil, err
	}
	s.close = z.Close
	return s, nil
}

func openArchive(file string, z *zip.ReadCloser, rule LabelRule) (*Source, error) {
	entries := make(map[string]*zip.File, len(z.File))
	var names []string
	for _, f := range z.File {
		switch {
		case strings.HasSuffix(f.Name, "/"):
			continue
		case !filepath.IsLocal(f.Name) || path.Clean(f.Name) != f.Name || strings.Contains(f.Name, `\`):
			return nil, failf(file, f.Name, "is no name of a file in a folder")
		case entries[f.Name] != nil:
			return nil, failf(file, f.Name, "is there twice")
		case path.Ext(f.Name) == ".npy":
			return openNPZ(file, z)
		case isOtherImage(f.Name):
			return nil, failf(file, f.Name, "is an image of a kind that is not read: make it a PNG")
		case isImage(f.Name):
			names = append(names, f.Name)
		}
		entries[f.Name] = f
	}
	read := func(name string, most int64) ([]byte, error) {
		r, err := entries[name].Open()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return readAtMost(r, most)
	}
	var list []byte
	if entries[labelsFile] != nil {
		var err error
		if list, err = read(labelsFile, maxLabels); err != nil {
			return nil, failf(file, labelsFile, "%v", err)
		}
	}
	return images(file, zipFormat, names, list, rule, func(name string) ([]byte, error) { return read(name, maxEncoded) })
}
