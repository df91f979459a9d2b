package kernels

import (
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/kernels/subspace"
)

// The probes of [TrainerConfig]; each has E zzᵀ = I.
const (
	Rademacher = "rademacher" // independent signs
	Sphere     = "sphere"     // uniform on the sphere of radius √(H·W·C)
	Gaussian   = "gaussian"   // independent unit normal
)

// Probes lists the probes.
var Probes = []string{Rademacher, Sphere, Gaussian}

// streamStep is the stream of package latent that seeds a training step.
const streamStep uint32 = 0x73746570

// randomState returns the state of the device's generator for a step. It depends on seed and step alone, so that a run
// can be resumed at any step.
func randomState(seed uint64, step int64) []uint64 { return threeWords(seed, uint64(step)*4) }

// partState returns the state for the dropout of one part of a step's batch.
func partState(seed uint64, step int64, part int) []uint64 {
	return threeWords(latent.Uint64(seed, streamStep, uint64(step)*4+3), uint64(part)*3)
}

func threeWords(seed, counter uint64) []uint64 {
	state := make([]uint64, 3)
	for i := range state {
		state[i] = latent.Uint64(seed, streamStep, counter+uint64(i))
	}
	return state
}

// generator draws on the device. Its state advances with every draw.
type generator struct{ state *Node }

// normal draws independent unit normal numbers.
func (r *generator) normal(shape shapes.Shape) (x *Node) {
	r.state, x = graph.RandomNormal(r.state, shape)
	return graph.StopGradient(x)
}

// probe draws a probe vector per sample, shape [B, H, W, C].
func (r *generator) probe(kind string, shape shapes.Shape) *Node {
	switch kind {
	case Sphere:
		x := r.normal(shape)
		radius := float64(shape.Size() / shape.Dimensions[0])
		return graph.Mul(x, graph.Sqrt(graph.MulScalar(graph.Reciprocal(subspace.Dot(x, x)), radius)))
	case Gaussian:
		return r.normal(shape)
	}
	var u *Node
	r.state, u = graph.RandomUniform(r.state, shape)
	one := graph.OnesLike(u)
	return graph.StopGradient(graph.Where(graph.LessThan(u, graph.MulScalar(one, 0.5)), one, graph.Neg(one)))
}
