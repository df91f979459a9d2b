package modelbench

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

type node = graph.Node

// function is one of the network's own programs.
type function struct {
	name   string
	images int // that it takes: x alone, w where it is differentiated, z where twice
	build  func(f *node, images, params []*node) []*node
	// outputs makes tensors of what it gives.
	outputs func(b *Bench, out []*device.Buffer) ([]safetensors.Tensor, error)
}

func inner(x, y *node) *node { return graph.ReduceAllSum(graph.Mul(x, y)) }

var forward = function{"forward", 1, func(f *node, _, _ []*node) []*node { return []*node{f} }, images("forward")}

var vjp = function{"vjp", 2, func(f *node, in, _ []*node) []*node {
	return graph.Gradient(inner(f, in[1]), in[0])
}, images("vjp")}

var parameters = function{"parameters", 2, func(f *node, in, params []*node) []*node {
	return graph.Gradient(inner(f, in[1]), params...)
}, parameterGradients}

var double = function{"double", 3, func(f *node, in, _ []*node) []*node {
	a := graph.Gradient(inner(f, in[1]), in[0])[0]
	return []*node{a, graph.Gradient(inner(a, in[2]), in[0])[0]}
}, images("double/a", "double/h")}

// images names outputs that are images.
func images(names ...string) func(*Bench, []*device.Buffer) ([]safetensors.Tensor, error) {
	return func(b *Bench, out []*device.Buffer) ([]safetensors.Tensor, error) {
		var tensors []safetensors.Tensor
		for i, name := range names {
			v := make([]float32, out[i].Size())
			if err := out[i].Read(v); err != nil {
				return nil, err
			}
			tensors = append(tensors, safetensors.FromFloat32s("output/"+name, b.in.image(), v))
		}
		return tensors, nil
	}
}

// parameterGradients names the gradients after the parameters, in PyTorch's layout.
func parameterGradients(b *Bench, out []*device.Buffer) ([]safetensors.Tensor, error) {
	var tensors []safetensors.Tensor
	for i, p := range b.net.Params() {
		v := make([]float32, p.Size())
		if err := out[i].Read(v); err != nil {
			return nil, err
		}
		tensors = append(tensors, safetensors.FromFloat32s("output/parameters/"+p.Name, p.Shape, p.FromDevice(v)))
	}
	return tensors, nil
}

// graphWork runs a function of the network. Its weights lie on the device tensor by tensor.
type graphWork struct {
	bench   *Bench
	what    function
	program *device.Program
	args    []device.Arg
	held    []*device.Buffer
}

func newGraph(what function) func(context.Context, *Bench) (work, error) {
	return func(ctx context.Context, b *Bench) (work, error) {
		g := &graphWork{bench: b, what: what}
		if err := g.upload(); err != nil {
			g.close()
			return nil, err
		}
		var err error
		g.program, err = b.dev.Program(ctx, fmt.Sprintf("bench %s %d|%s|%s", what.name, b.in.batch, b.at, b.model.Network().Spec().Key), g.build, b.at.Options()...)
		if err != nil {
			g.close()
			return nil, err
		}
		return g, nil
	}
}

func (g *graphWork) upload() error {
	put := func(v []float32, dims ...int) error {
		buf, err := g.bench.dev.Upload(v, dims...)
		if err == nil {
			g.held, g.args = append(g.held, buf), append(g.args, device.Use(buf))
		}
		return err
	}
	b := g.bench
	for i, p := range b.net.Params() {
		if err := put(p.ToDevice(b.source.Values[i]), p.DeviceShape()...); err != nil {
			return err
		}
	}
	if err := put(b.in.noise, b.in.batch); err != nil {
		return err
	}
	if n := b.net.Config().LabelDim; n > 0 {
		hot := make([]float32, b.in.batch*n)
		for i, l := range b.in.labels {
			hot[i*n+int(l)] = 1
		}
		if err := put(hot, b.in.batch, n); err != nil {
			return err
		}
	}
	all := [][]float32{b.in.x, b.in.w, b.in.z}
	for _, v := range all[:g.what.images] {
		if err := put(v, b.in.image()...); err != nil {
			return err
		}
	}
	return nil
}

func (g *graphWork) build(gr *graph.Graph) []*node {
	b := g.bench
	var values, in []*node
	params := b.net.Params()
	for _, p := range params {
		values = append(values, graph.Parameter(gr, p.Name, shapes.Make(dtypes.Float32, p.DeviceShape()...)))
	}
	noise := graph.Parameter(gr, "noise", shapes.Make(dtypes.Float32, b.in.batch))
	var label *node
	if n := b.net.Config().LabelDim; n > 0 {
		label = graph.Parameter(gr, "label", shapes.Make(dtypes.Float32, b.in.batch, n))
	}
	for _, name := range []string{"x", "w", "z"}[:g.what.images] {
		in = append(in, graph.Parameter(gr, name, shapes.Make(dtypes.Float32, b.in.image()...)))
	}
	x := graph.ConvertDType(in[0], b.at.Activations())
	f := b.net.Apply(nn.NewScope(params, values), x, noise, nil, label, nil)
	return g.what.build(graph.ConvertDType(f, dtypes.Float32), in, values)
}

func (g *graphWork) run(ctx context.Context) error {
	out, err := g.program.Run(ctx, g.args...)
	releaseAll(out)
	return err
}

func (g *graphWork) outputs(ctx context.Context) ([]safetensors.Tensor, error) {
	out, err := g.program.Run(ctx, g.args...)
	if err != nil {
		return nil, err
	}
	defer releaseAll(out)
	return g.what.outputs(g.bench, out)
}

func (g *graphWork) memory(ctx context.Context) (device.Memory, bool, error) {
	return g.program.Memory(ctx)
}

func (g *graphWork) close() { releaseAll(g.held) }

func releaseAll(buffers []*device.Buffer) {
	for _, b := range buffers {
		b.Release()
	}
}
