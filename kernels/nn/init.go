package nn

import (
	"math"
	"math/rand/v2"
)

// Initializer fills dst with the initial values of a tensor.
type Initializer func(rng *rand.Rand, dst []float32)

// Mode is one of EDM's initial distributions. With n_in and n_out the fan-in and
// fan-out of the layer (channels × kernel area),
//
//	XavierUniform   U(−1, 1) · √(6/(n_in+n_out))
//	XavierNormal    N(0, 1)  · √(2/(n_in+n_out))
//	KaimingUniform  U(−1, 1) · √(3/n_in)
//	KaimingNormal   N(0, 1)  · √(1/n_in)
//
// (Karras et al., arXiv 2206.00364, reference implementation.)
type Mode int

// The modes. Layers that say nothing use KaimingNormal, as in EDM.
const (
	KaimingNormal Mode = iota
	KaimingUniform
	XavierNormal
	XavierUniform
)

// Init says how a layer starts: a mode, and the factors on its weight and bias.
// EDM draws biases from the same distribution as weights, usually times zero.
type Init struct {
	Mode         Mode
	Weight, Bias float64
}

// weight returns the initialiser of a weight of the given fans.
func (i Init) weight(fanIn, fanOut int) Initializer { return i.Mode.scaled(i.Weight, fanIn, fanOut) }

// bias returns the initialiser of a bias of the given fans.
func (i Init) bias(fanIn, fanOut int) Initializer { return i.Mode.scaled(i.Bias, fanIn, fanOut) }

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
	case XavierNormal:
		return fill(normal, factor*math.Sqrt(2/(in+out)))
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

// ones is the initialiser of a norm's scale.
func ones(_ *rand.Rand, dst []float32) {
	for i := range dst {
		dst[i] = 1
	}
}
