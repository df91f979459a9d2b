//go:build linux && cgo

package device

import (
	"slices"
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
	values := []float32{1, 1 + 1.0/4096, 3, -1} // TensorFloat-32 cannot hold the second one
	run := func(exact bool, options ...ProgramOption) ([]float32, int64) {
		t.Helper()
		dev, err := Open(Config{ProgramCache: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		plugin, err := shim.Load(dev.Report().Plugin)
		if err != nil {
			t.Fatal(err)
		}
		plugin.Configure(shim.Settings{
			Cache: programCache(dev.Report().Plugin, dev.backend, dev.cfg), ExactProducts: exact,
		})
		p, err := dev.Program(t.Context(), "products", func(g *graph.Graph) []*graph.Node {
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2, 2))
			return []*graph.Node{graph.Dot(x, x)}
		}, options...)
		if err != nil {
			t.Fatal(err)
		}
		in, err := dev.Upload(values, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Release()
		out, err := p.Run(t.Context(), Use(in))
		if err != nil {
			t.Fatal(err)
		}
		defer out[0].Release()
		got := make([]float32, out[0].Size())
		if err := out[0].Read(got); err != nil {
			t.Fatal(err)
		}
		return got, dev.Stats().FromDisk
	}
	want, _ := run(false)
	for _, c := range []struct {
		name     string
		exact    bool
		options  []ProgramOption
		fromDisk int64
	}{
		{"left to the plugin, again", false, nil, 1},
		{"exact", true, nil, 0},
		{"TF32", true, []ProgramOption{AllowTF32}, 0},
		{"exact, again", true, nil, 1},
	} {
		got, fromDisk := run(c.exact, c.options...)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
		if fromDisk != c.fromDisk {
			t.Errorf("%s: %d programs from disk, want %d", c.name, fromDisk, c.fromDisk)
		}
	}
}
