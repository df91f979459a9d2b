package unet

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// prefix of every name in EDM's state dicts: the network is EDMPrecond's .model.
const prefix = "model."

// walk is what the steps of a network hand on to each other.
type walk struct {
	scope   *nn.Scope
	dropout float64
	x       *graph.Node   // the image on its way
	emb     *graph.Node   // [B, E], the embedded conditions
	skips   []*graph.Node // from the encoder to the decoder, last in first out
	aux     *graph.Node   // NCSN++'s input pyramid
	out     *graph.Node   // the output, summed up over the decoder's levels
}

func (w *walk) push() { w.skips = append(w.skips, w.x) }

func (w *walk) pop() *graph.Node {
	last := len(w.skips) - 1
	x := w.skips[last]
	w.skips = w.skips[:last]
	return x
}

// step is one module of the encoder or decoder, in the state dict's order.
type step struct {
	entries []nn.Entry
	apply   func(w *walk)
}

// layout lays out the steps both families share: an encoder that halves the resolution level by level, a decoder that
// doubles it again, and skips between the two, each block of the decoder taking the latest skip that is left.
type layout struct {
	cfg      Config
	family   *family
	steps    []step
	blocks   []block
	channels int   // of the image so far
	skips    []int // channels of the skips
}

func (l *layout) add(entries []nn.Entry, apply func(w *walk)) {
	l.steps = append(l.steps, step{entries, apply})
}

// name is "model.enc.16x16_block0" for part "enc", level 0 of 16 pixels and "block0". Of images that are not square the
// height counts, as in PhysicsNeMo's.
func (l *layout) name(part string, lv int, module string) string {
	res := l.cfg.ImgResolution.Height >> lv
	return fmt.Sprintf("%s%s.%dx%d_%s", prefix, part, res, res, module)
}

// block adds a block from in to out channels, between what comes before and after it.
func (l *layout) block(name string, in, out int, dir direction, attend bool, before, after func(w *walk)) {
	b := block{name: name, in: in, out: out, dir: dir, attend: attend, family: l.family}
	l.blocks, l.channels = append(l.blocks, b), out
	l.add(b.entries(), func(w *walk) {
		before(w)
		w.x = b.apply(w.scope, w.x, w.emb, w.dropout)
		after(w)
	})
}

func nothing(*walk) {}

// joinSkip puts the latest skip next to the image's channels.
func joinSkip(w *walk) { w.x = graph.Concatenate([]*graph.Node{w.x, w.pop()}, 3) }

// enter begins a level of the encoder: the first convolution, to out channels, on level 0 and a halving block below.
func (l *layout) enter(lv, out int) {
	if lv == 0 {
		first := conv{Conv2D: nn.Conv2D{
			Name: l.name("enc", 0, "conv"), In: l.cfg.ImgChannels, Out: out, Kernel: 3,
			Init: l.family.initial,
		}}
		l.add(first.entries(), func(w *walk) {
			w.x = first.apply(w.scope, w.x)
			w.push()
		})
		l.channels = out
	} else {
		l.block(l.name("enc", lv, "down"), l.channels, l.channels, down, false, nothing, (*walk).push)
	}
	l.skips = append(l.skips, l.channels)
}

// encode adds the blocks of a level of the encoder.
func (l *layout) encode(lv int, attend bool) {
	out := l.cfg.ModelChannels * l.cfg.ChannelMult[lv]
	for i := range l.cfg.NumBlocks {
		l.block(l.name("enc", lv, fmt.Sprintf("block%d", i)), l.channels, out, level, attend, nothing, (*walk).push)
		l.skips = append(l.skips, out)
	}
}

// decode adds a level of the decoder: two blocks on the lowest and a doubling one above, then one block per skip.
// attend says which of those have attention.
func (l *layout) decode(lv int, attend func(i int) bool) {
	if lv == len(l.cfg.ChannelMult)-1 {
		l.block(l.name("dec", lv, "in0"), l.channels, l.channels, level, true, nothing, nothing)
		l.block(l.name("dec", lv, "in1"), l.channels, l.channels, level, false, nothing, nothing)
	} else {
		l.block(l.name("dec", lv, "up"), l.channels, l.channels, up, false, nothing, nothing)
	}
	out := l.cfg.ModelChannels * l.cfg.ChannelMult[lv]
	for i := range l.cfg.NumBlocks + 1 {
		last := len(l.skips) - 1
		in := l.channels + l.skips[last]
		l.skips = l.skips[:last]
		l.block(l.name("dec", lv, fmt.Sprintf("block%d", i)), in, out, level, attend(i), joinSkip, nothing)
	}
}

// buildSong lays out SongUNet (Song et al., arXiv 2011.13456, as EDM has it). Its arguments cover DDPM++ (positional,
// standard, standard, [1, 1]) and NCSN++ (fourier, residual, standard, [1, 3, 3, 1]).
func buildSong(c Config) (embedder, *layout) {
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
	return newEmbedder(c, c.ModelChannels*c.ChannelMultNoise, width, initial, initial, initial), l
}

// pyramid adds what the encoder's type does to a level with the halved input, of that many channels, and returns the
// channels it has afterwards.
func (l *layout) pyramid(lv, channels int) int {
	f := l.family
	switch l.cfg.EncoderType {
	case "skip":
		shrink := conv{nn.Conv2D{Name: l.name("enc", lv, "aux_down"), In: channels, Out: channels}, down, f.filter}
		l.add(shrink.entries(), func(w *walk) { w.aux = shrink.apply(w.scope, w.aux) })
		toImage := conv{Conv2D: nn.Conv2D{
			Name: l.name("enc", lv, "aux_skip"), In: channels, Out: l.channels, Kernel: 1, Init: f.initial,
		}}
		l.add(toImage.entries(), func(w *walk) {
			w.pop()
			w.x = graph.Add(w.x, toImage.apply(w.scope, w.aux))
			w.push()
		})
	case "residual": // the sum is the pyramid from there on
		residual := conv{nn.Conv2D{
			Name: l.name("enc", lv, "aux_residual"), In: channels, Out: l.channels, Kernel: 3, Init: f.initial,
		}, down, f.filter}
		l.add(residual.entries(), func(w *walk) {
			w.pop()
			w.x = graph.MulScalar(graph.Add(w.x, residual.applyFused(w.scope, w.aux)), math.Sqrt(0.5))
			w.aux = w.x
			w.push()
		})
		return l.channels
	}
	return channels
}

// emit adds the output of a level.
func (l *layout) emit(lv int) {
	c, f := l.cfg, l.family
	if c.DecoderType == "skip" && lv < len(c.ChannelMult)-1 {
		grow := conv{nn.Conv2D{Name: l.name("dec", lv, "aux_up"), In: c.ImgChannels, Out: c.ImgChannels}, up, f.filter}
		l.add(grow.entries(), func(w *walk) { w.out = grow.apply(w.scope, w.out) })
	}
	l.output(l.name("dec", lv, "aux_norm"), l.name("dec", lv, "aux_conv"))
}

// output adds conv(silu(norm(x))) to the network's output.
func (l *layout) output(normName, convName string) {
	norm := nn.GroupNorm{Name: normName, Channels: l.channels, Eps: l.family.eps}
	last := nn.Conv2D{Name: convName, In: l.channels, Out: l.cfg.ImgChannels, Kernel: 3, Init: l.family.initialLast}
	l.add(nn.Entries(slices.Concat(norm.Params(), last.Params())), func(w *walk) {
		y := last.Apply(w.scope, nn.SiLU(norm.Apply(w.scope, w.x)))
		if w.out != nil {
			y = graph.Add(w.out, y)
		}
		w.out = y
	})
}

// buildDhariwal lays out DhariwalUNet, the ADM network (Dhariwal and Nichol, arXiv 2105.05233, as EDM has it): adaptive
// group norm, attention with 64 channels a head in every block of a listed resolution, unscaled skips.
func buildDhariwal(c Config) (embedder, *layout) {
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
	l.output(prefix+"out_norm", prefix+"out_conv")
	label := nn.Init{Mode: nn.KaimingNormal, Weight: math.Sqrt(float64(c.LabelDim))}
	return newEmbedder(c, c.ModelChannels, width, initial, label, zero), l
}
