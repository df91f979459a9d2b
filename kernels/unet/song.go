package unet

import (
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// prefix of every name in EDM's state dicts: the network is EDMPrecond's .model.
const prefix = "model."

// buildSong lays out SongUNet (Song et al., arXiv 2011.13456, as EDM has it). Its
// arguments cover DDPM++ (positional, standard, standard, [1, 1]) and NCSN++
// (fourier, residual, standard, [1, 3, 3, 1]).
func buildSong(c Config) (embedder, []step) {
	width := c.ModelChannels * c.ChannelMultEmb
	init := nn.Init{Mode: nn.XavierUniform, Weight: 1}
	initZero := nn.Init{Mode: nn.XavierUniform, Weight: 1e-5}
	f := &family{
		embedding: width, eps: 1e-6, skipScale: math.Sqrt(0.5), resampleProj: true,
		filter: nn.NewResampler(c.ResampleFilter),
		init:   init, initZero: initZero, initAttn: nn.Init{Mode: nn.XavierUniform, Weight: math.Sqrt(0.2)},
		heads: func(int) int { return 1 },
	}
	emb := newEmbedder(c, c.ModelChannels*c.ChannelMultNoise, width, init, init, init)
	resample := func(name string, channels int, dir direction) conv {
		return conv{nn.Conv2D{Name: name, In: channels, Out: channels}, dir, f.filter}
	}

	var steps []step
	var skips []int // channels of the skips
	channels, aux := c.ImgChannels, c.ImgChannels
	for lv, mult := range c.ChannelMult {
		res := c.ImgResolution >> lv
		at := func(name string) string { return fmt.Sprintf("%senc.%dx%d_%s", prefix, res, res, name) }
		if lv == 0 {
			steps = append(steps, first{conv{Conv2D: nn.Conv2D{Name: at("conv"), In: channels, Out: c.ModelChannels, Kernel: 3, Init: init}}})
			channels = c.ModelChannels
		} else {
			steps = append(steps, encode{block{name: at("down"), in: channels, out: channels, dir: down, family: f}})
			switch c.EncoderType {
			case "skip":
				steps = append(steps, shrink{resample(at("aux_down"), aux, down)},
					addSkip{conv{Conv2D: nn.Conv2D{Name: at("aux_skip"), In: aux, Out: channels, Kernel: 1, Init: init}}})
			case "residual":
				steps = append(steps, addResidual{conv{nn.Conv2D{Name: at("aux_residual"), In: aux, Out: channels, Kernel: 3, Init: init}, down, f.filter}})
				aux = channels
			}
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
			attend := i == c.NumBlocks && slices.Contains(c.AttnResolutions, res)
			steps = append(steps, join{block{name: at(fmt.Sprintf("block%d", i)), in: in, out: channels, attend: attend, family: f}})
		}
		if c.DecoderType == "skip" || lv == 0 {
			if c.DecoderType == "skip" && lv < last {
				steps = append(steps, grow{resample(at("aux_up"), c.ImgChannels, up)})
			}
			steps = append(steps, emit{
				nn.GroupNorm{Name: at("aux_norm"), Channels: channels, Eps: 1e-6},
				nn.Conv2D{Name: at("aux_conv"), In: channels, Out: c.ImgChannels, Kernel: 3, Init: initZero},
			})
		}
	}
	return emb, steps
}
