package kernels

import (
	"cmp"
	"context"

	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Precision is the arithmetic of a model's network. Parameters, their gradients, the optimiser, preconditioning,
// losses, inner products, projections, statistics of group norms and softmax are always float32.
//
// bfloat16 has the exponents of float32, so gradients do not vanish in it and the loss needs no scaling.
type Precision string

// The precisions. Analytic networks (FlowNetwork) are always computed in float32.
const (
	Float32  Precision = "float32"  // the default
	TF32     Precision = "tf32"     // products round their factors to TensorFloat-32 on NVIDIA GPUs; elsewhere float32
	BFloat16 Precision = "bfloat16" // activations and products
	Float64  Precision = "float64"  // of everything, for tests; parameters are still given in float32
)

// Precisions lists the precisions that users can choose.
var Precisions = []string{string(Float32), string(TF32), string(BFloat16)}

// ParsePrecision returns the precision of that name; empty means Float32.
func ParsePrecision(name string) (Precision, error) {
	return parse("precision", Precision(name), Float32, Precisions)
}

// parse checks that a name is one of all; an empty name means the default.
func parse[N ~string](field string, name, byDefault N, all []string) (N, error) {
	name = cmp.Or(name, byDefault)
	if wrong := suggest.OneOf(string(name), all); wrong != "" {
		return "", inputf(field, "%s", wrong)
	}
	return name, nil
}

// master returns the type of parameters and of everything outside the network.
func (p Precision) master() dtypes.DType {
	if p == Float64 {
		return dtypes.Float64
	}
	return dtypes.Float32
}

// Activations returns the type of images within a RawNetwork.
func (p Precision) Activations() dtypes.DType {
	if p == BFloat16 {
		return dtypes.BFloat16
	}
	return p.master()
}

// projections returns the type in which projectors are applied. TensorFloat-32 is chosen for a whole program and does
// not affect float64; products with projectors are few compared with the network's.
func (p Precision) projections() dtypes.DType {
	if p == TF32 {
		return dtypes.Float64
	}
	return p.master()
}

// Options returns the options of programs that evaluate the network.
func (p Precision) Options() []device.ProgramOption {
	if p == TF32 {
		return []device.ProgramOption{device.AllowTF32}
	}
	return nil
}

// MatmulPeak returns the device's rate of matrix products in this precision; see [device.Device.MatmulPeak].
func MatmulPeak(ctx context.Context, dev *device.Device, at Precision) (float64, error) {
	return dev.MatmulPeak(ctx, at.Activations(), at.Options()...)
}
