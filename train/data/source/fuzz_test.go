package source

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

// FuzzOpen: no file, of any format, does more than give images or an error. With the tag
// noparquet, as make fuzz has it, Parquet is left to the tests of bad input.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{
		"forms.zip", "edm.zip", "named.npz", "positional.npz", "tensors.parquet", "tensors.arrow", "tensors.arrows",
		"encoded.parquet", "batch-protocol2", "batch-protocol4",
	} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Auto)
		if err != nil {
			return
		}
		defer s.Close()
		_, _ = Convert(context.Background(), s, Settings{}, func(data.Form) (Sink, error) { return &kept{}, nil })
	})
}
