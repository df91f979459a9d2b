package unet

import (
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// buildDhariwal lays out DhariwalUNet, the ADM network (Dhariwal and Nichol,
// arXiv 2105.05233, as EDM has it): adaptive group norm, attention with 64
// channels a head in every block of a listed resolution, unscaled skips.
func buildDhariwal(c Config) (embedder, []step) {
	width := c.ModelChannels * c.ChannelMultEmb
	third := math.Sqrt(1. / 3)
	initial := nn.Init{Mode: nn.KaimingUniform, Weight: third, Bias: third}
	zero := nn.Init{}
	l := &layout{cfg: c, family: &family{
		embedding: width, eps: 1e-5, skipScale: 1, adaptive: true,
		filter:  nn.NewResampler([]float64{1, 1}),
		initial: initial, initialLast: zero, initialQKV: initial,
		heads: func(channels int) int { return channels / 64 },
	}}
	for lv, mult := range c.ChannelMult {
		l.enter(lv, c.ModelChannels*mult)
		l.encode(lv, slices.Contains(c.AttnResolutions, c.ImgResolution.Height>>lv))
	}
	for lv := len(c.ChannelMult) - 1; lv >= 0; lv-- {
		listed := slices.Contains(c.AttnResolutions, c.ImgResolution.Height>>lv)
		l.decode(lv, func(int) bool { return listed })
	}
	l.add(emit{
		nn.GroupNorm{Name: prefix + "out_norm", Channels: l.channels, Eps: l.family.eps},
		nn.Conv2D{Name: prefix + "out_conv", In: l.channels, Out: c.ImgChannels, Kernel: 3, Init: zero},
	})
	label := nn.Init{Mode: nn.KaimingNormal, Weight: math.Sqrt(float64(c.LabelDim))}
	return newEmbedder(c, c.ModelChannels, width, initial, label, zero), l.steps
}
