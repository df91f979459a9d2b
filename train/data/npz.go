package data

import (
	"archive/zip"
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// ReadNPZ reads the named arrays of a .npz file, all of them if no name is given. A missing name is an error.
func ReadNPZ(path string, names ...string) (map[string]*Array, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("npz: %w", err)
	}
	defer z.Close()
	out := map[string]*Array{}
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, ".npy")
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("npz: %s: %w", f.Name, err)
		}
		out[name], err = readNPY(bufio.NewReaderSize(r, 1<<20))
		r.Close()
		if err != nil {
			return nil, fmt.Errorf("npz: %s: %w", f.Name, err)
		}
	}
	for _, name := range names {
		if out[name] == nil {
			return nil, fmt.Errorf("npz: %s has no array %q", path, name)
		}
	}
	return out, nil
}

// WriteNPZ writes arrays as an uncompressed .npz file, sorted by name, as numpy.savez does.
func WriteNPZ(w io.Writer, arrays map[string]*Array) error {
	z := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := WriteNPY(f, arrays[name]); err != nil {
			return err
		}
	}
	return z.Close()
}
