package catalog

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

func open(t *testing.T, dir string) *Catalog {
	t.Helper()
	c, err := Open(t.Context(), Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var wantCode = apitest.WantCode

// plane returns a basis of two subspaces of 1×2 images whose first vector is (x, y).
func plane(t *testing.T, x, y float64) *basis.Basis {
	t.Helper()
	b, err := basis.Clusters(1, 2, [][]int{{basis.Shared}}, [][][]float64{{{x, y}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What is stored keeps its name until it is deleted or replaced, also over a restart. Files beside it are nobody's.
func TestShelf(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	stray := filepath.Join(c.folders.Bases, "stray.safetensors")
	for _, path := range []string{stray, filepath.Join(c.folders.Bases, "stray.basis")} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	store := func(name string, b *basis.Basis, replace bool) error {
		_, err := c.StoreBasis(name, b, replace)
		return err
	}
	if err := store("old", plane(t, 1, 0), false); err != nil {
		t.Fatal(err)
	}
	c = open(t, dir)
	first := func(name string) float64 {
		b, err := c.Basis(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := b.Vectors(basis.Shared)
		if err != nil {
			t.Fatal(err)
		}
		return v[0]
	}
	if v := first("old"); v != 1 {
		t.Errorf("the basis begins with %v", v)
	}
	wantCode(t, "a name that is taken", store("old", plane(t, 0, 1), false), api.NameTaken)
	wantCode(t, "a reserved name", store("dct", plane(t, 0, 1), true), api.BadRequest)
	if err := store("old", plane(t, 0, 1), true); err != nil {
		t.Fatal(err)
	}
	if c = open(t, dir); first("old") != 0 || len(c.BasisInfos()) != 1 {
		t.Errorf("after a restart it begins with %v", first("old"))
	}
	if err := c.DeleteBasis(t.Context(), api.BasisName{Basis: "old"}); err != nil {
		t.Fatal(err)
	}
	c = open(t, dir)
	_, err := c.Basis("old")
	wantCode(t, "a deleted basis", err, api.BasisNotFound)
	if _, err := os.Lstat(stray); err != nil {
		t.Errorf("a file beside what is stored: %v", err)
	}
}
