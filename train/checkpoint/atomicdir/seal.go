package atomicdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
)

// Seal gives a folder that has no manifest one of the files that lie in it: what they are counts as what was written.
// Nobody changes them meanwhile. An end of ctx ends it.
func Seal(ctx context.Context, dir string) error {
	if m, err := readManifest(dir); m != nil || err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	m := &Manifest{map[string]Entry{}}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name())) // of the file that a link leads to
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if m.files[e.Name()], err = entryOf(ctx, filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	text, err := m.Encode()
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, ManifestFile), text)
}

// entryOf reads a file.
func entryOf(ctx context.Context, path string) (Entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return Entry{}, err
	}
	defer file.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, &reader{ctx, file})
	return Entry{n, hex.EncodeToString(sum.Sum(nil))}, err
}
