package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

type node = graph.Node

// function is one of the network's own programs.
type function struct {
	name   string
	images int // number of inputs: x; w if the network is differentiated; z if twice
	build  func(f *node, images, params []*node) []*node
	// outputs returns tensors of what it computes.
	outputs func(b *modelBench, out []*device.Buffer) ([]safetensors.Tensor, error)
}

func inner(x, y *node) *node { return graph.ReduceAllSum(graph.Mul(x, y)) }

var forward = function{"forward", 1, func(f *node, _, _ []*node) []*node { return []*node{f} }, imageOutputs("forward")}

var vjp = function{"vjp", 2, func(f *node, in, _ []*node) []*node {
	return graph.Gradient(inner(f, in[1]), in[0])
}, imageOutputs("vjp")}

var parameters = function{"parameters", 2, func(f *node, in, params []*node) []*node {
	return graph.Gradient(inner(f, in[1]), params...)
}, gradientOutputs}

var double = function{"double", 3, func(f *node, in, _ []*node) []*node {
	a := graph.Gradient(inner(f, in[1]), in[0])[0]
	return []*node{a, graph.Gradient(inner(a, in[2]), in[0])[0]}
}, imageOutputs("double/a", "double/h")}

// imageOutputs returns a function that names outputs which are images.
func imageOutputs(names ...string) func(*modelBench, []*device.Buffer) ([]safetensors.Tensor, error) {
	return func(b *modelBench, out []*device.Buffer) ([]safetensors.Tensor, error) {
		var tensors []safetensors.Tensor
		for i, name := range names {
			v := make([]float32, out[i].Size())
			if err := out[i].Read(v); err != nil {
				return nil, err
			}
			tensors = append(tensors, safetensors.FromFloat32s("output/"+name, b.inputs.imageShape(), v))
		}
		return tensors, nil
	}
}

// gradientOutputs names the gradients after the parameters, in PyTorch's layout.
func gradientOutputs(b *modelBench, out []*device.Buffer) ([]safetensors.Tensor, error) {
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

// graphProgram runs a function of the network. Its weights lie on the device tensor by tensor.
type graphProgram struct {
	bench    *modelBench
	function function
	program  *device.Program
	args     []device.Arg
	buffers  []*device.Buffer
}

func newGraph(what function) func(context.Context, *modelBench) (program, error) {
	return func(ctx context.Context, b *modelBench) (program, error) {
		g := &graphProgram{bench: b, function: what}
		if err := g.upload(); err != nil {
			return nil, errors.Join(err, g.close())
		}
		var err error
		key := fmt.Sprintf("bench %s %d|%s|%s", what.name, b.inputs.batch, b.precision, b.model.Network().Spec().Key)
		g.program, err = b.dev.Program(ctx, key, g.build, b.precision.Options()...)
		if err != nil {
			return nil, errors.Join(err, g.close())
		}
		return g, nil
	}
}

func (g *graphProgram) upload() error {
	put := func(v []float32, dims ...int) error {
		buf, err := g.bench.dev.Upload(v, dims...)
		if err == nil {
			g.buffers, g.args = append(g.buffers, buf), append(g.args, device.Use(buf))
		}
		return err
	}
	b := g.bench
	for i, p := range b.net.Params() {
		if err := put(p.ToDevice(b.source.Values[i]), p.DeviceShape()...); err != nil {
			return err
		}
	}
	if err := put(b.inputs.noise, b.inputs.batch); err != nil {
		return err
	}
	if n := b.net.Shape().Labels; n > 0 {
		hot := make([]float32, b.inputs.batch*n)
		for i, l := range b.inputs.labels {
			hot[i*n+int(l)] = 1
		}
		if err := put(hot, b.inputs.batch, n); err != nil {
			return err
		}
	}
	for _, v := range [][]float32{b.inputs.x, b.inputs.w, b.inputs.z}[:g.function.images] {
		if err := put(v, b.inputs.imageShape()...); err != nil {
			return err
		}
	}
	return nil
}

func (g *graphProgram) build(gr *graph.Graph) []*node {
	b := g.bench
	var values, in []*node
	params := b.net.Params()
	for _, p := range params {
		values = append(values, graph.Parameter(gr, p.Name, shapes.Make(dtypes.Float32, p.DeviceShape()...)))
	}
	noise := graph.Parameter(gr, "noise", shapes.Make(dtypes.Float32, b.inputs.batch))
	var label *node
	if n := b.net.Shape().Labels; n > 0 {
		label = graph.Parameter(gr, "label", shapes.Make(dtypes.Float32, b.inputs.batch, n))
	}
	for _, name := range []string{"x", "w", "z"}[:g.function.images] {
		in = append(in, graph.Parameter(gr, name, shapes.Make(dtypes.Float32, b.inputs.imageShape()...)))
	}
	x := graph.ConvertDType(in[0], b.precision.Activations())
	f := b.net.Raw(nn.NewScope(params, values), x, noise, nil, label)
	return g.function.build(graph.ConvertDType(f, dtypes.Float32), in, values)
}

func (g *graphProgram) run(ctx context.Context) error {
	out, err := g.program.Run(ctx, g.args...)
	releaseAll(out)
	return err
}

func (g *graphProgram) outputs(ctx context.Context) ([]safetensors.Tensor, error) {
	out, err := g.program.Run(ctx, g.args...)
	if err != nil {
		return nil, err
	}
	defer releaseAll(out)
	return g.function.outputs(g.bench, out)
}

func (g *graphProgram) close() error {
	releaseAll(g.buffers)
	return nil
}

func releaseAll(buffers []*device.Buffer) {
	for _, b := range buffers {
		b.Release()
	}
}
