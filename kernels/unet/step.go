package unet

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

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
type step interface {
	entries() []nn.Entry
	apply(w *walk)
	count(t *tally) // the operations of apply on one image
}

var (
	_ step = first{}
	_ step = encode{}
	_ step = decode{}
	_ step = join{}
	_ step = shrink{}
	_ step = addSkip{}
	_ step = addResidual{}
	_ step = grow{}
	_ step = emit{}
)

// first is the convolution that takes the image in.
type first struct{ conv }

func (st first) apply(w *walk) {
	w.x = st.conv.apply(w.scope, w.x)
	w.push()
}

// encode is a block whose output the decoder will see again.
type encode struct{ block }

func (st encode) apply(w *walk) {
	w.x = st.block.apply(w.scope, w.x, w.emb, w.dropout)
	w.push()
}

// decode is a block of the decoder without a skip.
type decode struct{ block }

func (st decode) apply(w *walk) { w.x = st.block.apply(w.scope, w.x, w.emb, w.dropout) }

// join is a block of the decoder that takes the latest skip in.
type join struct{ block }

func (st join) apply(w *walk) {
	w.x = graph.Concatenate([]*graph.Node{w.x, w.pop()}, 3)
	w.x = st.block.apply(w.scope, w.x, w.emb, w.dropout)
}

// shrink halves the input pyramid.
type shrink struct{ conv }

func (st shrink) apply(w *walk) { w.aux = st.conv.apply(w.scope, w.aux) }

// addSkip adds the input pyramid to the image.
type addSkip struct{ conv }

func (st addSkip) apply(w *walk) {
	w.pop()
	w.x = graph.Add(w.x, st.conv.apply(w.scope, w.aux))
	w.push()
}

// addResidual adds the halved input pyramid to the image; the sum is the pyramid
// from there on.
type addResidual struct{ conv }

func (st addResidual) apply(w *walk) {
	w.pop()
	w.x = graph.MulScalar(graph.Add(w.x, st.applyFused(w.scope, w.aux)), math.Sqrt(0.5))
	w.aux = w.x
	w.push()
}

// grow doubles the output summed so far.
type grow struct{ conv }

func (st grow) apply(w *walk) { w.out = st.conv.apply(w.scope, w.out) }

// emit adds conv(silu(norm(x))) to the output.
type emit struct {
	norm nn.GroupNorm
	conv nn.Conv2D
}

func (st emit) entries() []nn.Entry {
	return append(nn.Entries(st.norm.Params()), nn.Entries(st.conv.Params())...)
}

func (st emit) apply(w *walk) {
	y := st.conv.Apply(w.scope, nn.SiLU(st.norm.Apply(w.scope, w.x)))
	if w.out != nil {
		y = graph.Add(w.out, y)
	}
	w.out = y
}
