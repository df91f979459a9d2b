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

// walk is the state that the steps of a network pass on.
type walk struct {
	scope   *nn.Scope
	dropout float64
	x       *graph.Node   // the image
	emb     *graph.Node   // [B, E], the embedded conditions
	skips   []*graph.Node // from the encoder to the decoder, last in first out
	pyramid *graph.Node   // NCSN++'s, of the input
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
	blocks   []*block
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

// attends reports whether a level's blocks have attention.
func (l *layout) attends(lv int) bool {
	return slices.Contains(l.cfg.AttnResolutions, l.cfg.ImgResolution.Height>>lv)
}

// block adds a block to out channels.
func (l *layout) block(name string, out int, dir direction, attend bool) {
	b := newBlock(l.family, name, l.channels, out, dir, attend)
	l.blocks, l.channels = append(l.blocks, b), out
	l.add(b.entries(), func(w *walk) { w.x = b.apply(w.scope, w.x, w.emb, w.dropout) })
}

// push keeps the image as a skip.
func (l *layout) push() {
	l.skips = append(l.skips, l.channels)
	l.add(nil, func(w *walk) { w.skips = append(w.skips, w.x) })
}

// pop puts the latest skip next to the image's channels.
func (l *layout) pop() {
	last := len(l.skips) - 1
	l.channels += l.skips[last]
	l.skips = l.skips[:last]
	l.add(nil, func(w *walk) {
		last := len(w.skips) - 1
		w.x = graph.Concatenate([]*graph.Node{w.x, w.skips[last]}, 3)
		w.skips = w.skips[:last]
	})
}

// enter begins a level of the encoder: the first convolution, to out channels, on level 0 and a halving block below.
func (l *layout) enter(lv, out int) {
	if lv > 0 {
		l.block(l.name("enc", lv, "down"), l.channels, down, false)
		return
	}
	first := nn.Conv2D{
		Name: l.name("enc", 0, "conv"), In: l.cfg.ImgChannels, Out: out, Kernel: 3, Init: l.family.initial,
	}
	l.add(nn.Entries(first), func(w *walk) { w.x = first.Apply(w.scope, w.x) })
	l.channels = out
}

// encode adds the blocks of a level of the encoder.
func (l *layout) encode(lv int) {
	l.push()
	for i := range l.cfg.NumBlocks {
		l.block(l.name("enc", lv, fmt.Sprintf("block%d", i)), l.cfg.ModelChannels*l.cfg.ChannelMult[lv], level, l.attends(lv))
		l.push()
	}
}

// decode adds a level of the decoder: two blocks on the lowest and a doubling one above, then one block per skip.
// attend says which of those have attention.
func (l *layout) decode(lv int, attend func(i int) bool) {
	if lv == len(l.cfg.ChannelMult)-1 {
		l.block(l.name("dec", lv, "in0"), l.channels, level, true)
		l.block(l.name("dec", lv, "in1"), l.channels, level, false)
	} else {
		l.block(l.name("dec", lv, "up"), l.channels, up, false)
	}
	for i := range l.cfg.NumBlocks + 1 {
		l.pop()
		l.block(l.name("dec", lv, fmt.Sprintf("block%d", i)), l.cfg.ModelChannels*l.cfg.ChannelMult[lv], level, attend(i))
	}
}

// output ends the network with conv(silu(norm(x))).
func (l *layout) output(normName, convName string) {
	norm := nn.GroupNorm{Name: normName, Channels: l.channels, Eps: l.family.eps}
	last := nn.Conv2D{Name: convName, In: l.channels, Out: l.cfg.ImgChannels, Kernel: 3, Init: l.family.initialLast}
	l.add(nn.Entries(norm, last), func(w *walk) { w.x = last.Apply(w.scope, nn.SiLU(norm.Apply(w.scope, w.x))) })
}

// buildSong lays out SongUNet (Song et al., arXiv 2011.13456, as EDM has it). Its arguments cover DDPM++ (positional,
// standard, [1, 1]) and NCSN++ (fourier, residual, [1, 3, 3, 1]).
func buildSong(c Config) (*embedder, *layout) {
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
		if lv > 0 && c.EncoderType == "residual" {
			l.residual(lv, pyramid)
			pyramid = l.channels
		}
		l.encode(lv)
	}
	for lv := len(c.ChannelMult) - 1; lv >= 0; lv-- {
		l.decode(lv, func(i int) bool { return l.attends(lv) && i == c.NumBlocks })
	}
	l.output(l.name("dec", 0, "aux_norm"), l.name("dec", 0, "aux_conv"))
	return newEmbedder(c, c.ModelChannels*c.ChannelMultNoise, width, initial, initial, initial), l
}

// residual adds the halved pyramid of the given channels to the image. The sum is the next pyramid.
func (l *layout) residual(lv, channels int) {
	halved := conv{nn.Conv2D{
		Name: l.name("enc", lv, "aux_residual"), In: channels, Out: l.channels, Kernel: 3, Init: l.family.initial,
	}, down, l.family.filter}
	l.add(halved.entries(), func(w *walk) {
		w.x = graph.MulScalar(graph.Add(w.x, halved.applyFused(w.scope, w.pyramid)), math.Sqrt(0.5))
		w.pyramid = w.x
	})
}

// buildDhariwal lays out DhariwalUNet, the ADM network (Dhariwal and Nichol, arXiv 2105.05233, as EDM has it): adaptive
// group norm, attention with 64 channels a head in every block of a listed resolution, unscaled skips.
func buildDhariwal(c Config) (*embedder, *layout) {
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
		l.encode(lv)
	}
	for lv := len(c.ChannelMult) - 1; lv >= 0; lv-- {
		l.decode(lv, func(int) bool { return l.attends(lv) })
	}
	l.output(prefix+"out_norm", prefix+"out_conv")
	label := nn.Init{Mode: nn.KaimingNormal, Weight: math.Sqrt(float64(c.LabelDim))}
	return newEmbedder(c, c.ModelChannels, width, initial, label, zero), l
}
