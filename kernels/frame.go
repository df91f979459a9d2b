package kernels

import (
	"cmp"
	"context"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/subspace"
)

// frame is common to all programs that evaluate the network. Their first parameters, each only if the model has it, are
//
//	params   [N]        the flat tensor of parameter values
//	vectors  [R, k, HW] of a dense basis
//	rows     [B] int32  the row of each sample, for a basis per class
//	labels   [B] int32  for a conditional network
//
// batchArgs supplies them at run time.
type frame struct {
	model  *Model
	g      *graph.Graph
	batch  int
	flat   *Node   // nil without parameters
	values []*Node // the parameters in flat, in device shape
	label  *Node   // [B, Labels] one-hot, zeros for −1; nil if unconditional
	sub    subspace.Subspaces
}

// frame declares the common parameters of a program. params names the flat tensor of parameter values.
func (m *Model) frame(g *graph.Graph, batch int, params string) *frame {
	f := &frame{model: m, g: g, batch: batch}
	if m.size > 0 {
		f.flat = f.param(params, m.size)
		from := 0
		for _, p := range m.params {
			to := from + p.Size()
			f.values = append(f.values, graph.Reshape(graph.Slice(f.flat, graph.AxisRange(from, to)), p.DeviceShape()...))
			from = to
		}
	}
	f.sub = m.proj.In(g, m.precision.projections(), batch)
	if m.spec.Labels > 0 {
		labels := graph.Parameter(g, "labels", shapes.Make(dtypes.Int32, batch))
		f.label = graph.OneHot(labels, m.spec.Labels, m.dtype)
	}
	return f
}

// param declares one more parameter, of the model's type.
func (f *frame) param(name string, dims ...int) *Node {
	return graph.Parameter(f.g, name, shapes.Make(f.model.dtype, dims...))
}

func (f *frame) image(name string) *Node { return f.param(name, f.model.imageDims(f.batch)...) }

func (f *frame) perSubspace(name string) *Node { return f.param(name, f.batch, f.model.J()) }

func releaseAll(bufs []*device.Buffer) {
	for _, b := range bufs {
		b.Release()
	}
}

// batchArgs are the arguments of frame that depend on a batch's labels.
type batchArgs struct{ basis, label []device.Arg }

// withParams returns the arguments of frame; params is nil for a network without parameters.
func (a batchArgs) withParams(params *device.Buffer, pass func(*device.Buffer) device.Arg) []device.Arg {
	var args []device.Arg
	if params != nil {
		args = append(args, pass(params))
	}
	return append(append(args, a.basis...), a.label...)
}

// staging collects buffers that are released together, and keeps the first error.
type staging struct {
	model *Model
	bufs  []*device.Buffer
	err   error
}

func (m *Model) stage() *staging { return &staging{model: m} }

// keep takes over a buffer and returns it as an argument.
func (s *staging) keep(b *device.Buffer, err error) device.Arg {
	if err != nil {
		s.err = cmp.Or(s.err, err)
		return device.Arg{}
	}
	s.bufs = append(s.bufs, b)
	return device.Use(b)
}

// put uploads values in the model's type.
func put[T device.Float](s *staging, values []T, dims ...int) device.Arg {
	return s.keep(device.UploadAs(s.model.dev, s.model.dtype, values, dims...))
}

// random uploads the state of the device's generator.
func (s *staging) random(state []uint64) device.Arg {
	return s.keep(s.model.dev.Upload(state, len(state)))
}

// batchArgs checks the labels of samples, nil meaning −1 for all, and uploads them padded to a batch.
func (s *staging) batchArgs(labels []int32, batch int) (a batchArgs, err error) {
	m := s.model
	if labels == nil {
		labels = []int32{-1}
	}
	rows := make([]int32, len(labels))
	for i, label := range labels {
		if label < -1 || m.spec.Labels > 0 && int(label) >= m.spec.Labels {
			return a, inputf("labels", "must lie in 0 … %d, or be −1 for none, got %d in sample %d",
				m.spec.Labels-1, label, i)
		}
		var ok bool
		if rows[i], ok = m.proj.Rows[label]; m.proj.Rows != nil && !ok {
			return a, inputf("labels", "must be classes that the basis holds vectors for, got %d in sample %d", label, i)
		}
	}
	if m.proj.Vectors != nil {
		a.basis = append(a.basis, device.Use(m.proj.Vectors))
	}
	if m.proj.Rows != nil {
		a.basis = append(a.basis, s.keep(m.dev.Upload(padded(rows, 1, batch), batch)))
	}
	if m.spec.Labels > 0 {
		a.label = append(a.label, s.keep(m.dev.Upload(padded(labels, 1, batch), batch)))
	}
	return a, s.err
}

// run runs a program unless an upload has failed.
func (s *staging) run(ctx context.Context, p *device.Program, args ...device.Arg) ([]*device.Buffer, error) {
	if s.err != nil {
		return nil, s.err
	}
	return p.Run(ctx, args...)
}

func (s *staging) release() { releaseAll(s.bufs) }

// program returns a program that evaluates the network.
func (m *Model) program(ctx context.Context, name string, build func(g *graph.Graph) []*Node) (*device.Program, error) {
	return m.dev.Program(ctx, name+"|"+m.key, build, m.precision.Options()...)
}

// Bucket returns the padded batch size for n samples: the next power of two up to 32, then the next multiple of 32.
// Programs are compiled for these sizes only, so requests of different sizes share programs.
func Bucket(n int) int {
	if n > 32 {
		return (n + 31) / 32 * 32
	}
	b := 1
	for b < n {
		b *= 2
	}
	return b
}

// padded repeats the last of len(x)/per rows until there are n.
func padded[T any](x []T, per, n int) []T {
	if len(x) == n*per || len(x) == 0 {
		return x
	}
	return append(slices.Clip(x), slices.Repeat(x[len(x)-per:], n-len(x)/per)...)
}

// downloadPadded copies the first len(dst) values of a buffer.
func downloadPadded[T device.Float](b *device.Buffer, dst []T) error {
	if b.Size() == len(dst) {
		return device.Download(b, dst)
	}
	all := make([]T, b.Size())
	if err := device.Download(b, all); err != nil {
		return err
	}
	copy(dst, all)
	return nil
}
