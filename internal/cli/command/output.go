package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
)

// PrintJSON prints a value as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Show prints a result: as JSON with --json, else by calling text.
func (e Env) Show(result any, text func(io.Writer) error) error {
	if e.JSON {
		return PrintJSON(e.Out, result)
	}
	return text(e.Out)
}

// NewTable returns a writer of a table that begins with a row of headings. Tabs end the cells; Flush ends the table.
func NewTable(w io.Writer, head string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, head)
	return t
}

// CheckOut returns an error unless a file can be written at path, so that no work is lost. It keeps a file that is
// there.
func CheckOut(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder; give the name of a file in it", path)
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".anisoflight-*")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be written: there is no folder %s", path, dir)
	case err != nil:
		return fmt.Errorf("%s cannot be written: %w", path, errors.Unwrap(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
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

// YesNo returns a truth value as a word.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Exists reports whether there is a file or folder at path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
