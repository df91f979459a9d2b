package unet

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// direction says what a layer does to the resolution.
type direction int

const (
	level direction = iota // keeps it
	down                   // halves it
	up                     // doubles it
)

// conv is EDM's convolution: resampling, then a convolution of kernel size Kernel; Kernel 0 means resampling alone,
// without parameters.
type conv struct {
	nn.Conv2D
	dir    direction
	filter nn.Resampler
}

func (c conv) entries() []nn.Entry {
	var out []nn.Entry
	if c.Kernel > 0 {
		out = nn.Entries(c.Params())
	}
	if c.dir != level {
		f := c.filter.Filter()
		n := 2 * (c.filter.Pad() + 1)
		out = append(out, nn.Entry{Param: nn.Param{Name: c.Name + ".resample_filter", Shape: []int{1, 1, n, n}}, Constant: f})
	}
	return out
}

func (c conv) apply(s *nn.Scope, x *graph.Node) *graph.Node {
	switch c.dir {
	case down:
		x = c.filter.Down(x)
	case up:
		x = c.filter.Up(x)
	}
	if c.Kernel == 0 {
		return x
	}
	return c.Apply(s, x)
}

// applyFused convolves first and then filters down, with the zero padding of both put around the image once: EDM's
// fused_resample, which NCSN++ uses on its input pyramid. Near the border it differs from apply.
func (c conv) applyFused(s *nn.Scope, x *graph.Node) *graph.Node {
	x = nn.Convolve(x, s.Like(x, c.Name+".weight"), c.Kernel/2+c.filter.Pad())
	x = c.filter.DownPadded(x)
	return nn.Shift(x, graph.Reshape(s.Param(c.Name+".bias"), 1, 1, 1, c.Out))
}

// family holds what tells the blocks of SongUNet from those of DhariwalUNet.
type family struct {
	embedding    int     // width of the embedding
	eps          float64 // of the group norms
	skipScale    float64 // factor after every residual sum
	adaptive     bool    // the embedding scales and shifts, instead of being added
	resampleProj bool    // the skip of a resampling block has a 1×1 convolution even where channels agree
	filter       nn.Resampler
	initial      nn.Init // of most layers
	initialLast  nn.Init // of the layers that end a branch
	initialQKV   nn.Init // of query, key and value
	heads        func(channels int) int
}

// block is the residual block of both families. With e = affine(emb),
//
//	y = conv0(silu(norm0(x)))                    resampled by dir
//	y = silu(norm1(y + e))                       SongUNet
//	y = silu(norm1(y)·(1 + e_scale) + e_shift)   DhariwalUNet
//	y = (conv1(dropout(y)) + skip(x)) · skipScale
//	y = (y + attention(norm2(y))) · skipScale    where there are heads
type block struct {
	name    string
	in, out int
	dir     direction
	attend  bool
	family  *family
}

func (b block) norm(i string, channels int) nn.GroupNorm {
	return nn.GroupNorm{Name: b.name + ".norm" + i, Channels: channels, Eps: b.family.eps}
}

func (b block) conv0() conv {
	return conv{
		nn.Conv2D{Name: b.name + ".conv0", In: b.in, Out: b.out, Kernel: 3, Init: b.family.initial},
		b.dir,
		b.family.filter,
	}
}

func (b block) conv1() nn.Conv2D {
	return nn.Conv2D{Name: b.name + ".conv1", In: b.out, Out: b.out, Kernel: 3, Init: b.family.initialLast}
}

func (b block) affine() nn.Linear {
	out := b.out
	if b.family.adaptive {
		out *= 2
	}
	return nn.Linear{Name: b.name + ".affine", In: b.family.embedding, Out: out, Init: b.family.initial}
}

// skip returns the layer on the short path; ok is false where that is the identity.
func (b block) skip() (c conv, ok bool) {
	if b.in == b.out && b.dir == level {
		return conv{}, false
	}
	kernel := 0
	if b.family.resampleProj || b.in != b.out {
		kernel = 1
	}
	return conv{
		nn.Conv2D{Name: b.name + ".skip", In: b.in, Out: b.out, Kernel: kernel, Init: b.family.initial},
		b.dir,
		b.family.filter,
	}, true
}

// attention is without meaning where heads returns 0.
func (b block) attention() nn.Attention {
	return nn.Attention{
		Name: b.name, Channels: b.out, Heads: b.heads(), InitQKV: b.family.initialQKV,
		InitProj: b.family.initialLast,
	}
}

func (b block) heads() int {
	if !b.attend {
		return 0
	}
	return b.family.heads(b.out)
}

func (b block) entries() []nn.Entry {
	out := nn.Entries(b.norm("0", b.in).Params())
	out = append(out, b.conv0().entries()...)
	out = append(out, nn.Entries(b.affine().Params())...)
	out = append(out, nn.Entries(b.norm("1", b.out).Params())...)
	out = append(out, nn.Entries(b.conv1().Params())...)
	if skip, ok := b.skip(); ok {
		out = append(out, skip.entries()...)
	}
	if b.heads() > 0 {
		out = append(out, nn.Entries(b.norm("2", b.out).Params())...)
		out = append(out, nn.Entries(b.attention().Params())...)
	}
	return out
}

// apply maps x [B, H, W, in] and emb [B, E] to [B, H', W', out].
func (b block) apply(s *nn.Scope, x, emb *graph.Node, dropout float64) *graph.Node {
	f := b.family
	y := b.conv0().apply(s, nn.SiLU(b.norm("0", b.in).Apply(s, x)))
	e := b.affine().Apply(s, emb)
	part := func(from, to int) *graph.Node {
		return graph.Reshape(graph.SliceAxis(e, 1, graph.AxisRange(from, to)), -1, 1, 1, b.out)
	}
	if f.adaptive {
		scale, shift := part(0, b.out), part(b.out, 2*b.out)
		y = nn.Shift(nn.Scale(b.norm("1", b.out).Apply(s, y), graph.AddScalar(scale, 1)), shift)
	} else {
		y = b.norm("1", b.out).Apply(s, nn.Shift(y, graph.Reshape(e, -1, 1, 1, b.out)))
	}
	y = b.conv1().Apply(s, nn.Dropout(s, nn.SiLU(y), dropout))
	if skip, ok := b.skip(); ok {
		x = skip.apply(s, x)
	}
	y = b.scaled(graph.Add(y, x))
	if b.heads() > 0 {
		a := b.attention().Apply(s, b.norm("2", b.out).Apply(s, y))
		y = b.scaled(graph.Add(a, y))
	}
	return y
}

func (b block) scaled(x *graph.Node) *graph.Node {
	if b.family.skipScale == 1 {
		return x
	}
	return graph.MulScalar(x, b.family.skipScale)
}
