package bench

import (
	"math"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// inputs is one batch for all programs. Image i of latents is that of seed i, as the service draws it.
type inputs struct {
	batch, side, channels int

	x, w, z, eps, latents []float32 // [B, H, W, C], unit normal
	images                []float32 // [B, H, W, C] in [−1, 1]
	labels                []int32   // [B]; −1 for an unconditional network
	noise                 []float32 // [B], ln(g)/8
	g, omega              []float64 // [B, J], EDM's noise grid and the weights of the trajectory loss
	score                 []float64 // [B], the weights of EDM's loss
}

func newInputs(m *kernels.Model, batch int) (inputs, error) {
	spec := m.Network().Spec()
	in := inputs{batch: batch, side: spec.Height, channels: spec.Channels}
	for stream, dst := range []*[]float32{&in.x, &in.w, &in.z, &in.eps, &in.images} {
		*dst = make([]float32, batch*m.Pixels())
		latent.Normal(1, uint32(stream), *dst)
	}
	for i, v := range in.images {
		in.images[i] = min(max(v/2, -1), 1)
	}
	in.latents = make([]float32, batch*m.Pixels())
	theta, err := schedule.InitialTheta("edm", schedule.DefaultKnots, schedule.DefaultT, schedule.DefaultG0)
	if err != nil {
		return in, err
	}
	path := theta.Path(schedule.DefaultT, schedule.DefaultG0)
	for i := range batch {
		latent.Normal(uint64(i), latent.StreamLatent, in.latents[i*m.Pixels():(i+1)*m.Pixels()])
		g, gdot := path.Eval(schedule.DefaultT * (float64(i) + 0.5) / float64(batch))
		for range m.J() {
			in.g, in.omega = append(in.g, g), append(in.omega, schedule.Omega(g, gdot, 1))
		}
		in.score = append(in.score, m.EDMWeight(g))
		in.noise = append(in.noise, float32(math.Log(g)/8))
		label := int32(-1)
		if spec.Labels > 0 {
			label = int32(i % spec.Labels)
		}
		in.labels = append(in.labels, label)
	}
	return in, nil
}

// imageShape returns the dimensions of a batch of images.
func (in *inputs) imageShape() []int { return []int{in.batch, in.side, in.side, in.channels} }

// namedTensors returns the inputs by name.
func (in *inputs) namedTensors() []safetensors.Tensor {
	out := []safetensors.Tensor{safetensors.FromFloat32s("input/noise", []int{in.batch}, in.noise)}
	for _, t := range []struct {
		name string
		v    []float32
	}{{"x", in.x}, {"w", in.w}, {"z", in.z}, {"eps", in.eps}, {"images", in.images}, {"latents", in.latents}} {
		out = append(out, safetensors.FromFloat32s("input/"+t.name, in.imageShape(), t.v))
	}
	for _, t := range []struct {
		name string
		v    []float64
	}{{"g", in.g}, {"omega", in.omega}, {"score", in.score}} {
		out = append(out, safetensors.FromFloat64s("input/"+t.name, []int{in.batch}, t.v))
	}
	labels := make([]int64, in.batch)
	for i, l := range in.labels {
		labels[i] = int64(l)
	}
	return append(out, safetensors.FromInt64s("input/labels", []int{in.batch}, labels))
}
