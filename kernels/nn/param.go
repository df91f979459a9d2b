package nn

import "math/rand/v2"

// Param describes one named tensor of a network's state.
//
// On disk and at every API border a parameter has PyTorch's name, shape and
// row-major layout; on the device a convolution kernel is stored as [H, W, in,
// out]. Every other rank keeps its layout.
type Param struct {
	// Name in the state dict, such as "model.map_layer0.weight".
	Name string
	// Shape in PyTorch's order: [out, in, H, W] or [out, in] or [C].
	Shape []int
	// Init draws the initial values in PyTorch's layout. Nil means zeros.
	Init Initializer
	// Frozen tensors belong to the state but are never trained: their gradient
	// is zero.
	Frozen bool
	// Optional tensors may be absent from a state dict and are then zero.
	Optional bool
}

// Initializer fills dst with initial values of a tensor.
type Initializer func(rng *rand.Rand, dst []float32)

// Size returns the number of elements.
func (p Param) Size() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// DeviceShape returns the shape of the tensor on the device.
func (p Param) DeviceShape() []int {
	s := p.Shape
	if len(s) == 4 {
		return []int{s[2], s[3], s[1], s[0]}
	}
	return append([]int(nil), s...)
}

// ToDevice returns the values, given in PyTorch's layout, in the device's
// layout. It panics if len(torch) is not p.Size(). The result may share memory
// with the argument when the layouts agree.
func (p Param) ToDevice(torch []float32) []float32 { return convert(p, torch, true) }

// FromDevice is the inverse of ToDevice.
func (p Param) FromDevice(device []float32) []float32 { return convert(p, device, false) }

func convert(p Param, src []float32, toDevice bool) []float32 {
	if len(src) != p.Size() {
		panic("nn: " + p.Name + " has the wrong number of values")
	}
	if len(p.Shape) != 4 {
		return src
	}
	out, in, h, w := p.Shape[0], p.Shape[1], p.Shape[2], p.Shape[3]
	dst := make([]float32, len(src))
	for o := range out {
		for i := range in {
			for y := range h {
				for x := range w {
					t := ((o*in+i)*h+y)*w + x
					d := ((y*w+x)*in+i)*out + o
					if toDevice {
						dst[d] = src[t]
					} else {
						dst[t] = src[d]
					}
				}
			}
		}
	}
	return dst
}
