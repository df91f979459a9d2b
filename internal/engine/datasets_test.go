package engine

import (
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
)

// labelled is the schema of images with labels.
func labelled(image api.Column) api.Schema {
	return api.Schema{Columns: []api.Column{image, {Name: "label", Type: api.Int32}}}
}

// putImages stores n random images of 8×8 with labels 0, 1, 2, 0, …
func putImages(t *testing.T, e *Engine, name string, n int) {
	t.Helper()
	foldertest.Dataset(t, filepath.Join(e.catalog.Folders().Datasets, name), n, true)
}
