package unet

import (
	"fmt"
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
	init := nn.Init{Mode: nn.KaimingUniform, Weight: third, Bias: third}
	initZero := nn.Init{Mode: nn.KaimingUniform}
	f := &family{
		embedding: width, eps: 1e-5, skipScale: 1, adaptive: true,
		filter: nn.NewResampler([]float64{1, 1}),
		init:   init, initZero: initZero, initAttn: init,
		heads: func(channels int) int { return channels / 64 },
	}
	initLabel := nn.Init{Mode: nn.KaimingNormal, Weight: math.Sqrt(float64(c.LabelDim))}
	emb := newEmbedder(c, c.ModelChannels, width, init, initLabel, initZero)

	var steps []step
	var skips []int // channels of the skips
	channels := c.ImgChannels
	for lv, mult := range c.ChannelMult {
		res := c.ImgResolution >> lv
		at := func(name string) string { return fmt.Sprintf("%senc.%dx%d_%s", prefix, res, res, name) }
		if lv == 0 {
			steps = append(steps, first{conv{Conv2D: nn.Conv2D{Name: at("conv"), In: channels, Out: c.ModelChannels * mult, Kernel: 3, Init: init}}})
			channels = c.ModelChannels * mult
		} else {
			steps = append(steps, encode{block{name: at("down"), in: channels, out: channels, dir: down, family: f}})
		}
		skips = append(skips, channels)
		for i := range c.NumBlocks {
			out := c.ModelChannels * mult
			attend := slices.Contains(c.AttnResolutions, res)
			steps = append(steps, encode{block{name: at(fmt.Sprintf("block%d", i)), in: channels, out: out, attend: attend, family: f}})
			channels = out
			skips = append(skips, channels)
		}
	}

	last := len(c.ChannelMult) - 1
	for lv := last; lv >= 0; lv-- {
		res := c.ImgResolution >> lv
		at := func(name string) string { return fmt.Sprintf("%sdec.%dx%d_%s", prefix, res, res, name) }
		if lv == last {
			steps = append(steps,
				decode{block{name: at("in0"), in: channels, out: channels, attend: true, family: f}},
				decode{block{name: at("in1"), in: channels, out: channels, family: f}})
		} else {
			steps = append(steps, decode{block{name: at("up"), in: channels, out: channels, dir: up, family: f}})
		}
		for i := range c.NumBlocks + 1 {
			in := channels + skips[len(skips)-1]
			skips = skips[:len(skips)-1]
			channels = c.ModelChannels * c.ChannelMult[lv]
			attend := slices.Contains(c.AttnResolutions, res)
			steps = append(steps, join{block{name: at(fmt.Sprintf("block%d", i)), in: in, out: channels, attend: attend, family: f}})
		}
	}
	return emb, append(steps, emit{
		nn.GroupNorm{Name: prefix + "out_norm", Channels: channels, Eps: f.eps},
		nn.Conv2D{Name: prefix + "out_conv", In: channels, Out: c.ImgChannels, Kernel: 3, Init: initZero},
	})
}
