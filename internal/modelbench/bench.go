package modelbench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/internal/process"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// work is a program that is measured.
type work interface {
	// run does the work once and waits for its end; the first time it compiles.
	run(ctx context.Context) error
	// outputs returns what the work computes from the bench's inputs, by name, to be compared.
	outputs(ctx context.Context) ([]safetensors.Tensor, error)
	// memory is what the compiler counts for the program; ok is false where it does not.
	memory(ctx context.Context) (m device.Memory, ok bool, err error)
	close()
}

// maker names a program and makes its work.
type maker struct {
	name string
	make func(ctx context.Context, b *Bench) (work, error)
}

// programs are all that can be measured, in the order in which tables have them.
var programs = []maker{
	{"forward", newGraph(forward)},
	{"vjp", newGraph(vjp)},
	{"parameters", newGraph(parameters)},
	{"double", newGraph(double)},
	{"step-score", newStep(kernels.LossOnly)},
	{"step-explicit", newStep(kernels.Explicit)},
	{"step-full", newStep(kernels.Full)},
	{"sample", newTrajectory("sample", NFE)},
	{"sample-flight", newServed},
	{"sample-35", newTrajectory("sample-35", 35)},
}

// Programs lists the names of the programs:
//
//	forward        F(x), the network without its preconditioning
//	vjp            ∇_x ⟨F, w⟩
//	parameters     the gradient of ⟨F, w⟩ by every parameter
//	double         a = ∇_x ⟨F, w⟩ and ∇_x ⟨a, z⟩
//	step-score     a training step on EDM's loss: noise, gradient, Adam, moving average
//	step-explicit  the same on the trajectory loss, with the explicit part of the schedule's gradient
//	step-full      the same with all five terms
//	sample         images by EDM's Heun sampler in [NFE] evaluations
//	sample-flight  the same, asked of a server over a loopback connection
//	sample-35      sample in 35 evaluations
func Programs() []string {
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	return names
}

// Bench is a network with values and a batch of inputs on a device. It belongs to one
// goroutine.
type Bench struct {
	dev      *device.Device
	source   *checkpoint.Model
	net      *unet.Net
	model    *kernels.Model
	at       kernels.Precision
	in       inputs
	baseline int64 // resident memory of the process before the model was on the device
	works    map[string]work
}

// Open puts a model of a UNet on the device, with inputs for a batch of so many images, to
// be measured at a precision.
func Open(dev *device.Device, m *checkpoint.Model, batch int, at kernels.Precision) (*Bench, error) {
	net, ok := m.Net.(*unet.Net)
	if !ok {
		return nil, fmt.Errorf("a network of type %T is not measured; it is SongUNet or DhariwalUNet", m.Net)
	}
	if batch < 1 {
		return nil, fmt.Errorf("%d images in a batch; at least one", batch)
	}
	b := &Bench{dev: dev, source: m, net: net, at: at, works: map[string]work{}}
	b.baseline, _ = process.Resident()
	var err error
	if b.model, err = kernels.NewModelAt(at, dev, kernels.UNet(net), nil); err != nil {
		return nil, err
	}
	if b.in, err = newInputs(b.model, batch); err != nil {
		b.model.Close()
		return nil, err
	}
	return b, nil
}

// Close frees the device's memory.
func (b *Bench) Close() {
	for _, w := range b.works {
		w.close()
	}
	b.model.Close()
}

// Compiled is what it took to make a program ready.
type Compiled struct {
	Program  string         `json:"program"`
	Seconds  float64        `json:"compile_seconds"` // of all executables that the program is made of
	FromDisk bool           `json:"from_disk"`       // all were read from the cache of compiled programs
	Memory   *device.Memory `json:"memory,omitempty"`
}

// Compile makes a program ready and runs it once.
func (b *Bench) Compile(ctx context.Context, name string) (Compiled, error) {
	before := b.dev.Stats()
	w, err := b.work(ctx, name)
	if err != nil {
		return Compiled{}, err
	}
	if err := w.run(ctx); err != nil {
		return Compiled{}, err
	}
	after := b.dev.Stats()
	c := Compiled{
		Program: name, Seconds: after.CompileSeconds - before.CompileSeconds,
		FromDisk: after.FromDisk-before.FromDisk == after.Compiled-before.Compiled,
	}
	m, ok, err := w.memory(ctx)
	if ok {
		c.Memory = &m
	}
	return c, err
}

// work returns the work of that name, made at its first use.
func (b *Bench) work(ctx context.Context, name string) (work, error) {
	if w, ok := b.works[name]; ok {
		return w, nil
	}
	for _, p := range programs {
		if p.name != name {
			continue
		}
		w, err := p.make(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		b.works[name] = w
		return w, nil
	}
	return nil, fmt.Errorf("there is no program %q; choose %s", name, strings.Join(Programs(), ", "))
}

// matmul returns the device's rate of matrix products in the bench's precision, in GFLOP/s.
func (b *Bench) matmul(ctx context.Context) (float64, error) {
	rate, err := kernels.MatmulPeak(ctx, b.dev, b.at)
	return rate / 1e9, err
}

// Timing is what some calls of a program took together, in seconds.
type Timing struct {
	Program string  `json:"program"`
	Calls   int     `json:"calls"`
	Wall    float64 `json:"wall"`
	CPU     float64 `json:"cpu"`   // processor time of all threads of this process
	FLOPs   int64   `json:"flops"` // of one call
}

// Run calls a program a number of times. It must have been compiled for the times to mean
// anything.
func (b *Bench) Run(ctx context.Context, name string, calls int) (Timing, error) {
	w, err := b.work(ctx, name)
	if err != nil {
		return Timing{}, err
	}
	cpu, err := process.CPUSeconds()
	if err != nil {
		return Timing{}, err
	}
	before := b.flops()
	began := time.Now()
	for range calls {
		if err := w.run(ctx); err != nil {
			return Timing{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	t := Timing{Program: name, Calls: calls, Wall: time.Since(began).Seconds()}
	t.FLOPs = (b.flops() - before) / int64(max(calls, 1))
	end, err := process.CPUSeconds()
	t.CPU = end - cpu
	return t, err
}

// flops counts what the device has done so far.
func (b *Bench) flops() (total int64) {
	for _, w := range b.dev.Work() {
		total += w.FLOPs
	}
	return total
}

// Peak is the memory of a process that has run one program.
type Peak struct {
	Program string `json:"program"`
	// Peak is the most that was resident, less what was before the model was loaded, in bytes.
	Peak int64 `json:"peak_bytes"`
}

// Peak runs a program three times and returns how far the memory of this process has
// grown. The number is the program's own where nothing else has run, and where it came
// from the cache on disk, since compiling takes memory too.
func (b *Bench) Peak(ctx context.Context, name string) (Peak, error) {
	if _, err := b.Run(ctx, name, 3); err != nil {
		return Peak{}, err
	}
	_, peak := process.Resident()
	return Peak{name, peak - b.baseline}, nil
}
