package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/anisoflight/anisoflight/internal/process"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// program is a computation of a network that is measured.
type program interface {
	// run does the work once and waits for its end; the first time it compiles.
	run(ctx context.Context) error
	// outputs returns what the program computes from the inputs, by name, to be compared.
	outputs(ctx context.Context) ([]safetensors.Tensor, error)
	close() error
}

// programs are all that can be measured, in the order in which tables have them.
var programs = []struct {
	name string
	make func(ctx context.Context, b *modelBench) (program, error)
}{
	{"forward", newGraph(forward)},                 // F(x), the network without its preconditioning
	{"vjp", newGraph(vjp)},                         // ∇_x ⟨F, w⟩
	{"parameters", newGraph(parameters)},           // the gradient of ⟨F, w⟩ by every parameter
	{"double", newGraph(double)},                   // a = ∇_x ⟨F, w⟩ and ∇_x ⟨a, z⟩
	{"step-score", newScoreStep},                   // a training step on EDM's loss
	{"step-explicit", newStep(kernels.Explicit)},   // one on the trajectory loss, by mode of the estimator
	{"step-full", newStep(kernels.Full)},           // with all five terms
	{"sample", newTrajectory("sample", sampleNFE)}, // images by EDM's Heun sampler in nine evaluations
	{"sample-35", newTrajectory("sample-35", 35)},  // sample in 35 evaluations
	{"step-backprop", newStep(kernels.Backprop)},
	{"step-loss", newStep(kernels.LossOnly)}, // a step without the schedule's gradient
}

// What the benchmarks measure by default.
var (
	modelPrograms     = programNames()[:9]
	estimatorPrograms = []string{"step-explicit", "step-backprop", "step-full", "step-loss"}
)

func programNames() []string {
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	return names
}

// modelBench is a network with values and a batch of inputs on a device. It belongs to one goroutine.
type modelBench struct {
	dev       *device.Device
	source    *checkpoint.Model
	net       trainableNetwork
	model     *kernels.Model
	precision kernels.Precision
	inputs    inputs
	frozen    bool  // steps do not train the network
	baseline  int64 // resident memory of the process before the model was on the device
	opened    map[string]program
}

// modelOptions say how a network is measured.
type modelOptions struct {
	batch     int
	precision kernels.Precision
	dct       bool // two subspaces by frequency, for steps
	frozen    bool // steps do not train the network
}

// openModel puts a model of a UNet on the device, with inputs for a batch.
func openModel(dev *device.Device, m *checkpoint.Model, o modelOptions) (*modelBench, error) {
	net, err := networkOf(m)
	if err != nil {
		return nil, err
	}
	b := &modelBench{dev: dev, source: m, net: net, precision: o.precision, frozen: o.frozen, opened: map[string]program{}}
	b.baseline, _ = process.Resident()
	var subspaces *basis.Basis
	if o.dct {
		side := net.Shape().Height
		if subspaces, err = basis.DCT(side, side, 0); err != nil {
			return nil, err
		}
	}
	if b.model, err = kernels.NewModelAt(o.precision, dev, net, subspaces); err != nil {
		return nil, err
	}
	if b.inputs, err = newInputs(b.model, o.batch); err != nil {
		b.model.Close()
		return nil, err
	}
	return b, nil
}

// close frees the device's memory.
func (b *modelBench) close() error {
	var errs []error
	for _, p := range b.opened {
		errs = append(errs, p.close())
	}
	b.model.Close()
	return errors.Join(errs...)
}

// program returns the program of that name, made at its first use.
func (b *modelBench) program(ctx context.Context, name string) (program, error) {
	if p, ok := b.opened[name]; ok {
		return p, nil
	}
	for _, p := range programs {
		if p.name != name {
			continue
		}
		made, err := p.make(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		b.opened[name] = made
		return made, nil
	}
	return nil, fmt.Errorf("program must be one of %s, got %q", strings.Join(programNames(), ", "), name)
}

// compiled is what it took to make a program ready.
type compiled struct {
	Program  string         `json:"program"`
	Seconds  float64        `json:"compile_seconds"`  // of all executables that the program is made of
	FromDisk bool           `json:"from_disk"`        // all were read from the cache of compiled programs
	Memory   *device.Memory `json:"memory,omitempty"` // of a training step, estimated from its graph
}

// compile makes a program ready and runs it once.
func (b *modelBench) compile(ctx context.Context, name string) (compiled, error) {
	before := b.dev.Stats()
	p, err := b.program(ctx, name)
	if err != nil {
		return compiled{}, err
	}
	if err := p.run(ctx); err != nil {
		return compiled{}, err
	}
	after := b.dev.Stats()
	c := compiled{
		Program: name, Seconds: after.CompileSeconds - before.CompileSeconds,
		FromDisk: after.FromDisk-before.FromDisk == after.Compiled-before.Compiled,
	}
	if step, ok := p.(*stepProgram); ok {
		c.Memory, err = step.memory()
	}
	return c, err
}

// timing is what some calls of a program took together, in seconds.
type timing struct {
	Program string  `json:"program"`
	Calls   int     `json:"calls"`
	Wall    float64 `json:"wall"`
	CPU     float64 `json:"cpu"`   // processor time of all threads of this process
	FLOPs   int64   `json:"flops"` // of one call
}

// run calls a program a number of times. It must have been compiled for the times to mean anything.
func (b *modelBench) run(ctx context.Context, name string, calls int) (timing, error) {
	p, err := b.program(ctx, name)
	if err != nil {
		return timing{}, err
	}
	before := b.flops()
	wall, cpu, err := measureTime(func() error {
		for range calls {
			if err := p.run(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
	return timing{Program: name, Calls: calls, Wall: wall, CPU: cpu, FLOPs: (b.flops() - before) / int64(calls)}, err
}

// flops counts the floating-point operations that the device has done so far.
func (b *modelBench) flops() (total int64) {
	for _, w := range b.dev.Work() {
		total += w.FLOPs
	}
	return total
}

// matmul returns the device's rate of matrix products in the bench's precision, in GFLOP/s.
func (b *modelBench) matmul(ctx context.Context) (float64, error) {
	rate, err := kernels.MatmulPeak(ctx, b.dev, b.precision)
	return rate / 1e9, err
}

// digest returns the SHA-256 of all bits that a program computes: of a training step the state that the steps taken so
// far have led to, of every other program its outputs.
func (b *modelBench) digest(ctx context.Context, name string) (string, error) {
	p, err := b.program(ctx, name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if s, ok := p.(interface {
		digest(ctx context.Context, h hash.Hash) error
	}); ok {
		err = s.digest(ctx, h)
	} else {
		var out []safetensors.Tensor
		out, err = p.outputs(ctx)
		for _, t := range out {
			h.Write(t.Data)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), err
}
