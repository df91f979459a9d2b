//go:build linux && cgo

package device

import (
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// The shim writes the precision of products into programs for GPUs. A plugin for the processor takes the same text,
// which makes no difference there but to the program's key on disk.
func TestPrecisionOfProductsReachesThePlugin(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name     string
		exact    bool
		options  []ProgramOption
		fromDisk int64
	}{
		{"left to the plugin", false, nil, 0},
		{"left to the plugin, again", false, nil, 1},
		{"exact", true, nil, 0},
		{"TF32", true, []ProgramOption{AllowTF32}, 0},
		{"exact, again", true, nil, 1},
	} {
		dev, err := Open(Config{ProgramCache: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		dev.plugin.Configure(shim.Settings{
			Cache: programCache(dev.Report().Plugin, dev.backend, dev.cfg), ExactProducts: c.exact,
		})
		if _, err := dev.Program(t.Context(), "products", func(g *graph.Graph) []*graph.Node {
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2, 2))
			return []*graph.Node{graph.Dot(x, x)}
		}, c.options...); err != nil {
			t.Fatal(err)
		}
		if got := dev.Stats().FromDisk; got != c.fromDisk {
			t.Errorf("%s: %d programs from disk, want %d", c.name, got, c.fromDisk)
		}
	}
}
