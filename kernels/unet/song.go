package unet

import (
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// buildSong lays out SongUNet (Song et al., arXiv 2011.13456, as EDM has it). Its
// arguments cover DDPM++ (positional, standard, standard, [1, 1]) and NCSN++
// (fourier, residual, standard, [1, 3, 3, 1]).
func buildSong(c Config) (embedder, []step) {
	width := c.ModelChannels * c.ChannelMultEmb
	initial := nn.Init{Mode: nn.XavierUniform, Weight: 1}
	l := &layout{cfg: c, family: &family{
		embedding: width, eps: 1e-6, skipScale: math.Sqrt(0.5), resampleProj: true,
		filter:  nn.NewResampler(c.ResampleFilter),
		initial: initial, initialLast: nn.Init{Mode: nn.XavierUniform, Weight: 1e-5},
		initialQKV: nn.Init{Mode: nn.XavierUniform, Weight: math.Sqrt(0.2)},
		heads:      func(int) int { return 1 },
	}}

	pyramid := c.ImgChannels // channels of the input pyramid
	for lv := range c.ChannelMult {
		l.enter(lv, c.ModelChannels)
		if lv > 0 {
			pyramid = l.pyramid(lv, pyramid)
		}
		l.encode(lv, slices.Contains(c.AttnResolutions, c.ImgResolution.Height>>lv))
	}
	for lv := len(c.ChannelMult) - 1; lv >= 0; lv-- {
		listed := slices.Contains(c.AttnResolutions, c.ImgResolution.Height>>lv)
		l.decode(lv, func(i int) bool { return listed && i == c.NumBlocks })
		if c.DecoderType == "skip" || lv == 0 {
			l.emit(lv)
		}
	}
	return newEmbedder(c, c.ModelChannels*c.ChannelMultNoise, width, initial, initial, initial), l.steps
}

// pyramid adds what the encoder's type does to a level with the halved input, of
// that many channels, and returns the channels it has afterwards.
func (l *layout) pyramid(lv, channels int) int {
	f := l.family
	switch l.cfg.EncoderType {
	case "skip":
		l.add(shrink{conv{nn.Conv2D{Name: l.name("enc", lv, "aux_down"), In: channels, Out: channels}, down, f.filter}},
			addSkip{conv{Conv2D: nn.Conv2D{
				Name: l.name("enc", lv, "aux_skip"), In: channels, Out: l.channels, Kernel: 1,
				Init: f.initial,
			}}})
	case "residual":
		l.add(addResidual{conv{nn.Conv2D{
			Name: l.name("enc", lv, "aux_residual"), In: channels, Out: l.channels, Kernel: 3,
			Init: f.initial,
		}, down, f.filter}})
		return l.channels
	}
	return channels
}

// emit adds the output of a level.
func (l *layout) emit(lv int) {
	c, f := l.cfg, l.family
	if c.DecoderType == "skip" && lv < len(c.ChannelMult)-1 {
		l.add(grow{conv{nn.Conv2D{Name: l.name("dec", lv, "aux_up"), In: c.ImgChannels, Out: c.ImgChannels}, up, f.filter}})
	}
	l.add(emit{
		nn.GroupNorm{Name: l.name("dec", lv, "aux_norm"), Channels: l.channels, Eps: f.eps},
		nn.Conv2D{Name: l.name("dec", lv, "aux_conv"), In: l.channels, Out: c.ImgChannels, Kernel: 3, Init: f.initialLast},
	})
}
