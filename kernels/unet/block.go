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
		out = nn.Entries(c)
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

// family has the differences between the blocks of SongUNet and DhariwalUNet.
type family struct {
	embedding    int     // width of the embedding
	eps          float64 // of the group norms
	skipScale    float64 // factor after every residual sum
	adaptive     bool    // the embedding scales and shifts, instead of being added
	resampleProj bool    // the skip of a resampling block has a 1×1 convolution even if channels agree
	filter       nn.Resampler
	initial      nn.Init // of most layers
	initialLast  nn.Init // of the layers that end a branch
	initialQKV   nn.Init // of query, key and value
	heads        func(channels int) int
}

// block is the residual block of both families. With e = affine(emb),
//
//	y = conv0(silu(norm0(x)))                    resampled
//	y = silu(norm1(y + e))                       SongUNet
//	y = silu(norm1(y)·(1 + e_scale) + e_shift)   DhariwalUNet
//	y = (conv1(dropout(y)) + skip(x)) · skipScale
//	y = (y + attention(norm2(y))) · skipScale    if there are heads
type block struct {
	family              *family
	norm0, norm1, norm2 nn.GroupNorm
	conv0               conv
	conv1               nn.Conv2D
	affine              nn.Linear
	skip                *conv         // nil: the identity
	attention           *nn.Attention // nil: none
}

func newBlock(f *family, name string, in, out int, dir direction, attend bool) *block {
	norm := func(i string, channels int) nn.GroupNorm {
		return nn.GroupNorm{Name: name + ".norm" + i, Channels: channels, Eps: f.eps}
	}
	layer := func(suffix string, in, kernel int, initial nn.Init) nn.Conv2D {
		return nn.Conv2D{Name: name + suffix, In: in, Out: out, Kernel: kernel, Init: initial}
	}
	b := &block{
		family: f, norm0: norm("0", in), norm1: norm("1", out), norm2: norm("2", out),
		conv0:  conv{layer(".conv0", in, 3, f.initial), dir, f.filter},
		conv1:  layer(".conv1", out, 3, f.initialLast),
		affine: nn.Linear{Name: name + ".affine", In: f.embedding, Out: out, Init: f.initial},
	}
	if f.adaptive {
		b.affine.Out = 2 * out
	}
	if in != out || dir != level {
		kernel := 0
		if f.resampleProj || in != out {
			kernel = 1
		}
		b.skip = &conv{layer(".skip", in, kernel, f.initial), dir, f.filter}
	}
	if heads := f.heads(out); attend && heads > 0 {
		b.attention = &nn.Attention{
			Name: name, Channels: out, Heads: heads, InitQKV: f.initialQKV, InitProj: f.initialLast,
		}
	}
	return b
}

func (b *block) entries() []nn.Entry {
	out := append(nn.Entries(b.norm0), b.conv0.entries()...)
	out = append(out, nn.Entries(b.affine, b.norm1, b.conv1)...)
	if b.skip != nil {
		out = append(out, b.skip.entries()...)
	}
	if b.attention != nil {
		out = append(out, nn.Entries(b.norm2, b.attention)...)
	}
	return out
}

// apply maps x [B, H, W, in] and emb [B, E] to [B, H', W', out].
func (b *block) apply(s *nn.Scope, x, emb *graph.Node, dropout float64) *graph.Node {
	out := b.conv1.Out
	y := b.conv0.apply(s, nn.SiLU(b.norm0.Apply(s, x)))
	e := b.affine.Apply(s, emb)
	if b.family.adaptive {
		part := func(from, to int) *graph.Node {
			return graph.Reshape(graph.SliceAxis(e, 1, graph.AxisRange(from, to)), -1, 1, 1, out)
		}
		scale, shift := part(0, out), part(out, 2*out)
		y = nn.Shift(nn.Scale(b.norm1.Apply(s, y), graph.AddScalar(scale, 1)), shift)
	} else {
		y = b.norm1.Apply(s, nn.Shift(y, graph.Reshape(e, -1, 1, 1, out)))
	}
	y = b.conv1.Apply(s, nn.Dropout(s, nn.SiLU(y), dropout))
	if b.skip != nil {
		x = b.skip.apply(s, x)
	}
	y = b.scaled(graph.Add(y, x))
	if b.attention != nil {
		y = b.scaled(graph.Add(b.attention.Apply(s, b.norm2.Apply(s, y)), y))
	}
	return y
}

func (b *block) scaled(x *graph.Node) *graph.Node {
	if b.family.skipScale == 1 {
		return x
	}
	return graph.MulScalar(x, b.family.skipScale)
}
