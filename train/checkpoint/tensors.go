package checkpoint

import (
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// group is one set of values of all parameters, stored under prefix/NAME.
type group struct {
	prefix   string
	values   *[][]float32
	optional bool
}

func (g group) encode(net kernels.Architecture, f *stream) error {
	if *g.values == nil && g.optional {
		return nil
	}
	params := net.Params()
	if len(*g.values) != len(params) {
		return tensorf(g.prefix, "has %d tensors, the network %d parameters", len(*g.values), len(params))
	}
	for i, p := range params {
		if len((*g.values)[i]) != p.Size() {
			return tensorf(g.prefix+"/"+p.Name, "has %d values, want %d", len((*g.values)[i]), p.Size())
		}
		f.float32s(g.prefix+"/"+p.Name, p.Shape, (*g.values)[i])
	}
	return nil
}

func (g group) decode(net kernels.Architecture, f *safetensors.File) error {
	params := net.Params()
	if len(params) > 0 && g.optional && f.Lookup(g.prefix+"/"+params[0].Name) == nil {
		return nil
	}
	for _, p := range params {
		name := g.prefix + "/" + p.Name
		t := f.Lookup(name)
		switch {
		case t == nil:
			return tensorf(name, "is missing")
		case t.DType != safetensors.F32:
			return tensorf(name, "is of type %s; want F32", t.DType)
		case !slices.Equal(t.Shape, p.Shape):
			return tensorf(name, "has shape %v; network.json asks for %v", t.Shape, p.Shape)
		}
		values, err := t.Float32s()
		if err != nil {
			return err
		}
		*g.values = append(*g.values, values)
	}
	return nil
}

// table is numbers of the schedule's parameters, stored as one tensor where they are there.
type table struct {
	name   string
	values *[][][]float64
}

// table stores a table [row][subspace][K−1].
func (s *stream) table(name string, table [][][]float64) {
	shape := []int{len(table), len(table[0]), len(table[0][0])}
	var flat []float64
	for _, row := range table {
		flat = append(flat, slices.Concat(row...)...)
	}
	s.float64s(name, shape, flat)
}

// tableOf is the inverse of stream.table; nil where there is no such tensor.
func tableOf(f *safetensors.File, name string) ([][][]float64, error) {
	t := f.Lookup(name)
	if t == nil {
		return nil, nil
	}
	if t.DType != safetensors.F64 || len(t.Shape) != 3 || slices.Min(t.Shape) < 1 {
		return nil, tensorf(name, "is of type %s and shape %v; it is [rows, subspaces, parameters] of F64", t.DType, t.Shape)
	}
	flat, err := t.Float64s()
	if err != nil {
		return nil, err
	}
	var table [][][]float64
	for row := range slices.Chunk(flat, t.Shape[1]*t.Shape[2]) {
		table = append(table, slices.Collect(slices.Chunk(row, t.Shape[2])))
	}
	return table, nil
}
