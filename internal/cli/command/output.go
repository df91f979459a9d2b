package command

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
)

// PrintJSON prints a value as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteFile writes a file that appears whole or not at all.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// YesNo returns a truth value as a word of a table.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Exists reports whether there is a file or a folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
