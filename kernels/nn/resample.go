package nn

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
)

// Resampler halves or doubles the resolution of an image with a separable filter f of even length n, as EDM's
// convolutions do. With f normalised to Σf = 1 and p = n/2 − 1, along each axis
//
//	down: y[q] = Σ_k f[k] x[2q + k − p]
//	up:   y[j] = 2 Σ_i f[j − 2i + p] x[i]
//
// with zeros outside the image. The filter [1, 1] means the mean of 2×2 pixels, and repetition. It is computed by
// slices and sums, because the library's strided and grouped convolutions cannot be differentiated twice.
type Resampler struct{ taps []float64 }

// NewResampler returns the resampler of a filter of even length and nonzero sum.
func NewResampler(filter []float64) Resampler {
	sum := 0.0
	for _, f := range filter {
		sum += f
	}
	taps := make([]float64, len(filter))
	for i, f := range filter {
		taps[i] = f / sum
	}
	return Resampler{taps}
}

// Filter returns the two-dimensional filter f fᵀ, n×n row-major, as EDM stores it.
func (r Resampler) Filter() []float32 {
	n := len(r.taps)
	f := make([]float32, n*n)
	for i := range n {
		for j := range n {
			f[i*n+j] = float32(r.taps[i] * r.taps[j])
		}
	}
	return f
}

// Pad returns p, the number of zeros that Down and Up assume at each border.
func (r Resampler) Pad() int { return len(r.taps)/2 - 1 }

func (r Resampler) box() bool { return len(r.taps) == 2 && r.taps[0] == r.taps[1] }

// Down maps x [B, H, W, C], H and W even, to [B, H/2, W/2, C].
func (r Resampler) Down(x *Node) *Node {
	d := x.Shape().Dimensions
	if r.box() {
		x = graph.Reshape(x, d[0], d[1]/2, 2, d[2]/2, 2, d[3])
		return graph.MulScalar(graph.ReduceSum(x, 2, 4), 0.25)
	}
	return r.down(r.down(x, 1, r.Pad()), 2, r.Pad())
}

// DownPadded is Down for an image that already has borders of p pixels.
func (r Resampler) DownPadded(x *Node) *Node { return r.down(r.down(x, 1, 0), 2, 0) }

// Up maps x [B, H, W, C] to [B, 2H, 2W, C].
func (r Resampler) Up(x *Node) *Node {
	d := x.Shape().Dimensions
	if r.box() {
		x = graph.Reshape(x, d[0], d[1], 1, d[2], 1, d[3])
		x = graph.BroadcastToDims(x, d[0], d[1], 2, d[2], 2, d[3])
		return graph.Reshape(x, d[0], 2*d[1], 2*d[2], d[3])
	}
	return r.up(r.up(x, 1), 2)
}

// down filters and halves one axis. Tap k multiplies x[2q + k − pad]: an even or an odd entry of x, by the parity of k
// − pad.
func (r Resampler) down(x *Node, axis, pad int) *Node {
	d := x.Shape().Clone().Dimensions
	half := d[axis] / 2
	d[axis] = half
	x = graph.Reshape(x, slices.Insert(slices.Clone(d), axis+1, 2)...)
	phase := [2]*Node{}
	for i := range phase {
		phase[i] = graph.Reshape(graph.SliceAxis(x, axis+1, graph.AxisElem(i)), d...)
	}
	n := half + pad - r.Pad() // output entries
	var y *Node
	for k, tap := range r.taps {
		m := k - pad
		parity := m & 1
		y = plus(y, graph.MulScalar(shift(phase[parity], axis, (m-parity)/2, n), tap))
	}
	return y
}

// up doubles and filters one axis. In output j = 2q + parity, tap k = j − 2i + p multiplies x[i].
func (r Resampler) up(x *Node, axis int) *Node {
	d := x.Shape().Clone().Dimensions
	n := d[axis]
	phase := [2]*Node{}
	for k, tap := range r.taps {
		m := k - r.Pad()
		parity := m & 1
		term := graph.MulScalar(shift(x, axis, (parity-m)/2, n), 2*tap)
		phase[parity] = plus(phase[parity], term)
	}
	y := graph.Concatenate([]*Node{graph.InsertAxes(phase[0], axis+1), graph.InsertAxes(phase[1], axis+1)}, axis+1)
	d[axis] = 2 * n
	return graph.Reshape(y, d...)
}

// shift returns y[q] = x[q + by], q = 0, ..., n−1 along axis, zero outside x.
func shift(x *Node, axis, by, n int) *Node {
	return autodiff.Padded(x, axis, -by, n+by-x.Shape().Dimensions[axis])
}

func plus(sum, term *Node) *Node {
	if sum == nil {
		return term
	}
	return graph.Add(sum, term)
}
