package unet

import (
	"fmt"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// prefix of every name in EDM's state dicts: the network is EDMPrecond's .model.
const prefix = "model."

// layout lays out the steps both families share: an encoder that halves the
// resolution level by level, a decoder that doubles it again, and skips between
// the two, each block of the decoder taking the latest skip that is left.
type layout struct {
	cfg      Config
	family   *family
	steps    []step
	channels int   // of the image so far
	skips    []int // channels of the skips
}

func (l *layout) add(steps ...step) { l.steps = append(l.steps, steps...) }

// name is "model.enc.16x16_block0" for part "enc", level 0 of 16 pixels and "block0". Of images that are not square
// the height counts, as in PhysicsNeMo's.
func (l *layout) name(part string, lv int, module string) string {
	res := l.cfg.ImgResolution.Height >> lv
	return fmt.Sprintf("%s%s.%dx%d_%s", prefix, part, res, res, module)
}

// block returns the next block and takes its output for the image.
func (l *layout) block(name string, in, out int, dir direction, attend bool) block {
	l.channels = out
	return block{name: name, in: in, out: out, dir: dir, attend: attend, family: l.family}
}

// enter begins a level of the encoder: the first convolution, to out channels,
// on level 0 and a halving block below.
func (l *layout) enter(lv, out int) {
	if lv == 0 {
		l.add(first{conv{Conv2D: nn.Conv2D{
			Name: l.name("enc", 0, "conv"), In: l.cfg.ImgChannels, Out: out, Kernel: 3,
			Init: l.family.initial,
		}}})
		l.channels = out
	} else {
		l.add(encode{l.block(l.name("enc", lv, "down"), l.channels, l.channels, down, false)})
	}
	l.skips = append(l.skips, l.channels)
}

// encode adds the blocks of a level of the encoder.
func (l *layout) encode(lv int, attend bool) {
	out := l.cfg.ModelChannels * l.cfg.ChannelMult[lv]
	for i := range l.cfg.NumBlocks {
		l.add(encode{l.block(l.name("enc", lv, fmt.Sprintf("block%d", i)), l.channels, out, level, attend)})
		l.skips = append(l.skips, out)
	}
}

// decode adds a level of the decoder: two blocks on the lowest and a doubling
// one above, then one block per skip. attend says which of those have attention.
func (l *layout) decode(lv int, attend func(i int) bool) {
	if lv == len(l.cfg.ChannelMult)-1 {
		l.add(decode{l.block(l.name("dec", lv, "in0"), l.channels, l.channels, level, true)},
			decode{l.block(l.name("dec", lv, "in1"), l.channels, l.channels, level, false)})
	} else {
		l.add(decode{l.block(l.name("dec", lv, "up"), l.channels, l.channels, up, false)})
	}
	out := l.cfg.ModelChannels * l.cfg.ChannelMult[lv]
	for i := range l.cfg.NumBlocks + 1 {
		last := len(l.skips) - 1
		in := l.channels + l.skips[last]
		l.skips = l.skips[:last]
		l.add(join{l.block(l.name("dec", lv, fmt.Sprintf("block%d", i)), in, out, level, attend(i))})
	}
}
