// Package nn holds the layers networks are built from.
//
// A layer is a small value (its name in the state dict and its sizes) with two methods: Params lists its tensors with
// PyTorch's names, shapes and EDM's initial distributions; Apply appends it to a computation graph and takes its
// tensors from a [Scope] by name. A [Layout] is the state dict of a network, with the rules for reading and writing
// it. Layers hold no values and no nodes, so one network serves any number of graphs, types and devices.
//
// Images are [B, H, W, C]. Every layer works in the type of its input: float32, bfloat16 (see scope.go), or in tests
// float64. All layers can be differentiated any number of times by reverse mode.
//
// Begin reading at [Param] and [Scope], then [Conv2D] for the shape of a layer.
package nn

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Param describes one named tensor of a network's state.
//
// Outside the device a parameter has PyTorch's name, shape and row-major layout. On the device a convolution kernel
// [out, in, H, W] is stored as [H, W, in, out], which is the fastest order; other tensors are stored as they are.
type Param struct {
	Name     string      // in the state dict, such as "model.map_layer0.weight"
	Shape    []int       // in PyTorch's order: [out, in, H, W], [out, in] or [C]
	Init     Initializer // draws initial values in PyTorch's layout; nil means zeros
	Frozen   bool        // part of the state, but not trained: its gradient is zero
	Optional bool        // may be missing in a state dict, and is then zero
}

// Size returns the number of elements.
func (p Param) Size() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// Values draws the initial values, in PyTorch's layout. They depend only on the seed and the parameter's name, not on
// the other parameters of the network.
func (p Param) Values(seed uint64) []float32 {
	v := make([]float32, p.Size())
	if p.Init != nil {
		h := fnv.New64a()
		_, _ = h.Write([]byte(p.Name))
		p.Init(rand.New(rand.NewPCG(seed, h.Sum64())), v)
	}
	return v
}

// DeviceShape returns the tensor's shape on the device.
func (p Param) DeviceShape() []int {
	s := p.Shape
	if len(s) == 4 {
		return []int{s[2], s[3], s[1], s[0]}
	}
	return append([]int(nil), s...)
}

// ToDevice returns the values, given in PyTorch's layout, in the device's. It panics unless there are p.Size() values.
// The result is new memory.
func (p Param) ToDevice(torch []float32) []float32 {
	device := make([]float32, p.Size())
	p.PutDevice(device, torch)
	return device
}

// FromDevice is the inverse of ToDevice.
func (p Param) FromDevice(device []float32) []float32 {
	torch := make([]float32, p.Size())
	p.reorder(torch, device, false)
	return torch
}

// PutDevice is ToDevice into dst, which must have p.Size() values.
func (p Param) PutDevice(dst, torch []float32) { p.reorder(dst, torch, true) }

func (p Param) reorder(dst, src []float32, toDevice bool) {
	if len(src) != p.Size() || len(dst) != p.Size() {
		panic(fmt.Sprintf("nn: %s has %d values, got %d and room for %d", p.Name, p.Size(), len(src), len(dst)))
	}
	if len(p.Shape) != 4 {
		copy(dst, src)
		return
	}
	out, in, pixels := p.Shape[0], p.Shape[1], p.Shape[2]*p.Shape[3]
	for o := range out {
		for i := range in {
			for q := range pixels {
				torch, device := (o*in+i)*pixels+q, (q*in+i)*out+o
				if toDevice {
					dst[device] = src[torch]
				} else {
					dst[torch] = src[device]
				}
			}
		}
	}
}

// Initializer fills dst with the initial values of a tensor.
type Initializer func(rng *rand.Rand, dst []float32)

// Mode is one of EDM's initial distributions. With n_in and n_out the fan-in and fan-out of the layer (channels ×
// kernel area),
//
//	XavierUniform   U(−1, 1) · √(6/(n_in+n_out))
//	KaimingUniform  U(−1, 1) · √(3/n_in)
//	KaimingNormal   N(0, 1)  · √(1/n_in)
//
// (Karras et al., arXiv 2206.00364, reference implementation.)
type Mode int

// The modes. The default is KaimingNormal, as in EDM.
const (
	KaimingNormal Mode = iota
	KaimingUniform
	XavierUniform
)

// Init describes the initial values of a layer: a mode, and factors of weight and bias. EDM draws biases from the same
// distribution as weights, usually times zero.
type Init struct {
	Mode         Mode
	Weight, Bias float64
}

func (m Mode) scaled(factor float64, fanIn, fanOut int) Initializer {
	if factor == 0 {
		return nil
	}
	in, out := float64(fanIn), float64(fanOut)
	uniform := func(rng *rand.Rand) float64 { return 2*rng.Float64() - 1 }
	normal := (*rand.Rand).NormFloat64
	switch m {
	case KaimingNormal:
		return fill(normal, factor*math.Sqrt(1/in))
	case KaimingUniform:
		return fill(uniform, factor*math.Sqrt(3/in))
	case XavierUniform:
		return fill(uniform, factor*math.Sqrt(6/(in+out)))
	}
	panic("nn: unknown mode of initialisation")
}

func fill(draw func(*rand.Rand) float64, scale float64) Initializer {
	return func(rng *rand.Rand, dst []float32) {
		for i := range dst {
			dst[i] = float32(scale * draw(rng))
		}
	}
}

// Normal returns the initialiser N(0, std²).
func Normal(std float64) Initializer { return fill((*rand.Rand).NormFloat64, std) }

// Ones is the initialiser of a norm's scale.
func Ones(_ *rand.Rand, dst []float32) {
	for i := range dst {
		dst[i] = 1
	}
}
