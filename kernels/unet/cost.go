package unet

import (
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// FLOPs counts the floating-point operations of the network on one image: those of its
// convolutions, linear layers and attention, a multiply-add being two. Taps on padding
// count. The augmentation's map does not: it is left out where there are no labels.
//
//	convolution of k×k on n pixels     2 n k² · in · out
//	linear layer                       2 · in · out
//	attention on n pixels, c channels  8 n c² + 4 n² c
func (n *Net) FLOPs() int64 {
	t := &tally{pixels: n.cfg.ImgResolution, aux: n.cfg.ImgResolution}
	n.embed.count(t)
	for _, st := range n.steps {
		st.count(t)
	}
	return t.flops
}

// tally follows the resolution of the image and of the input pyramid
// through the steps, and adds up what they compute.
type tally struct {
	pixels, aux kernels.Resolution
	flops       int64
}

func (t *tally) linear(l *nn.Linear) {
	if l != nil {
		t.flops += 2 * int64(l.In) * int64(l.Out)
	}
}

// conv counts a convolution whose output has such a size.
func (t *tally) conv(c nn.Conv2D, size kernels.Resolution) {
	t.flops += 2 * int64(size.Height*size.Width) * int64(c.Kernel*c.Kernel) * int64(c.In) * int64(c.Out)
}

// resampled returns the size of an image after a layer.
func (d direction) resampled(size kernels.Resolution) kernels.Resolution {
	switch d {
	case down:
		return kernels.Resolution{Height: size.Height / 2, Width: size.Width / 2}
	case up:
		return kernels.Resolution{Height: size.Height * 2, Width: size.Width * 2}
	}
	return size
}

func (e embedder) count(t *tally) {
	t.linear(e.label)
	for i := range e.ratios {
		t.linear(&e.ratios[i])
	}
	t.linear(&e.layer0)
	t.linear(&e.layer1)
}

func (b block) count(t *tally) {
	affine := b.affine()
	t.linear(&affine)
	t.pixels = b.dir.resampled(t.pixels)
	t.conv(b.conv0().Conv2D, t.pixels)
	t.conv(b.conv1(), t.pixels)
	if skip, ok := b.skip(); ok {
		t.conv(skip.Conv2D, t.pixels)
	}
	if b.heads() > 0 {
		n, c := int64(t.pixels.Height*t.pixels.Width), int64(b.out)
		t.flops += 8*n*c*c + 4*n*n*c
	}
}

func (st first) count(t *tally) { t.conv(st.Conv2D, t.pixels) }

// count of a filter alone: it is no convolution.
func (st shrink) count(t *tally) { t.aux = st.dir.resampled(t.aux) }

func (st addSkip) count(t *tally) { t.conv(st.Conv2D, t.aux) }

// count of a convolution that comes before the filter, on a padded image.
func (st addResidual) count(t *tally) {
	pad := 2 * st.filter.Pad()
	t.conv(st.Conv2D, kernels.Resolution{Height: t.aux.Height + pad, Width: t.aux.Width + pad})
	t.aux = st.dir.resampled(t.aux)
}

// count of a filter alone.
func (st grow) count(*tally) {}

func (st emit) count(t *tally) { t.conv(st.conv, t.pixels) }
