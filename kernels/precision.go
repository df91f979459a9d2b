package kernels

import (
	"cmp"
	"context"

	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Precision says in what arithmetic a model's network is computed. Parameters, their gradients and the optimiser are
// float32 whatever it is, and so are preconditioning, losses, inner products, projections, group norms' statistics and
// softmax.
//
// bfloat16 has float32's exponents. Gradients that fit float32 therefore do not vanish in it, and the loss is not
// scaled as training in float16 would need.
type Precision string

// The precisions. Analytic networks (FlowNetwork) are computed in float32 at all of them.
const (
	Float32 Precision = "float32" // the default: products of float32 numbers as such
	// the network's products round their factors to TensorFloat-32 on NVIDIA GPUs; elsewhere float32
	TF32     Precision = "tf32"
	BFloat16 Precision = "bfloat16" // the network's activations and products
	Float64  Precision = "float64"  // of everything, for tests: parameters are still given in float32
)

// Precisions lists the names of the precisions that a user may choose.
var Precisions = []string{string(Float32), string(TF32), string(BFloat16)}

// ParsePrecision returns the precision of that name; empty means Float32.
func ParsePrecision(name string) (Precision, error) {
	return parse("precision", Precision(name), Float32, Precisions)
}

// parse returns a name that is one of all, or the default for an empty one.
func parse[N ~string](field string, name, byDefault N, all []string) (N, error) {
	name = cmp.Or(name, byDefault)
	if wrong := suggest.OneOf(string(name), all); wrong != "" {
		return "", inputf(field, "%s", wrong)
	}
	return name, nil
}

// master is the type of parameters and of all that is not the network's.
func (p Precision) master() dtypes.DType {
	if p == Float64 {
		return dtypes.Float64
	}
	return dtypes.Float32
}

// Activations is the type of images within a RawNetwork.
func (p Precision) Activations() dtypes.DType {
	if p == BFloat16 {
		return dtypes.BFloat16
	}
	return p.master()
}

// projections is the type in which projectors are applied. Whether products round to TensorFloat-32 is decided for a
// whole program, and does not touch float64; products with projectors are few beside the network's.
func (p Precision) projections() dtypes.DType {
	if p == TF32 {
		return dtypes.Float64
	}
	return p.master()
}

// Options are those of programs that evaluate the network.
func (p Precision) Options() []device.ProgramOption {
	if p == TF32 {
		return []device.ProgramOption{device.AllowTF32}
	}
	return nil
}

// MatmulPeak is the device's rate of matrix products in the network's arithmetic, see [device.Device.MatmulPeak].
func MatmulPeak(ctx context.Context, dev *device.Device, at Precision) (float64, error) {
	return dev.MatmulPeak(ctx, at.Activations(), at.Options()...)
}
