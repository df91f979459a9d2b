package nn

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// Conv2D is a convolution with stride one and zero padding Kernel/2, so that the resolution stays (Kernel odd):
//
//	y[b, p, o] = Σ_{k, i} x[b, p+k−⌊Kernel/2⌋, i] · weight[o, i, k] + bias[o]
//
// As in PyTorch this is a cross-correlation: the kernel is not reversed.
type Conv2D struct {
	Name            string
	In, Out, Kernel int
	Init            Init
}

// Params lists weight [Out, In, Kernel, Kernel] and bias [Out].
func (c Conv2D) Params() []Param {
	fanIn, fanOut := c.In*c.Kernel*c.Kernel, c.Out*c.Kernel*c.Kernel
	return []Param{
		{
			Name: c.Name + ".weight", Shape: []int{c.Out, c.In, c.Kernel, c.Kernel},
			Init: c.Init.Mode.scaled(c.Init.Weight, fanIn, fanOut),
		},
		{Name: c.Name + ".bias", Shape: []int{c.Out}, Init: c.Init.Mode.scaled(c.Init.Bias, fanIn, fanOut)},
	}
}

// Apply maps x [B, H, W, In] to [B, H, W, Out].
func (c Conv2D) Apply(s *Scope, x *Node) *Node {
	return Shift(Convolve(x, s.Like(x, c.Name+".weight"), c.Kernel/2), channels(s.Param(c.Name+".bias")))
}

// Convolve convolves x [B, H, W, In] with w [K, K, In, Out] at stride one, with pad zeros on every side. A 1×1 kernel
// without padding is a matrix product, which is faster.
func Convolve(x, w *Node, pad int) *Node {
	return Window{{Pad: [2]int{pad, pad}}, {Pad: [2]int{pad, pad}}}.Convolve(x, w)
}

// Window describes a convolution along each of an image's axes.
type Window []AxisWindow

// AxisWindow describes a convolution along one axis. For Stride, Dilate and Spread zero means one.
type AxisWindow struct {
	Stride int
	Pad    [2]int // zeros before and behind
	Dilate int    // distance of the kernel's taps
	Spread int    // distance of the image's pixels, with zeros between, in a transposed convolution
}

// Convolve convolves x [B, H, W, In] with w [K, L, In, Out], or likewise with another number of axes.
func (n Window) Convolve(x, w *Node) *Node {
	d := w.Shape().Dimensions
	k := len(n)
	if n.Pointwise(w) {
		return graph.DotGeneral(x, []int{k + 1}, nil, graph.Reshape(w, d[k], d[k+1]), []int{0}, nil)
	}
	axes := graph.ConvolveAxesConfig{
		InputChannels: k + 1, KernelInputChannels: k, KernelOutputChannels: k + 1, OutputChannels: k + 1,
	}
	var stride, spread, dilate []int
	var pads [][2]int
	for i, a := range n {
		axes.InputSpatial, axes.OutputSpatial = append(axes.InputSpatial, i+1), append(axes.OutputSpatial, i+1)
		axes.KernelSpatial = append(axes.KernelSpatial, i)
		stride, pads = append(stride, max(a.Stride, 1)), append(pads, a.Pad)
		spread, dilate = append(spread, max(a.Spread, 1)), append(dilate, max(a.Dilate, 1))
	}
	return graph.ConvGeneral(x, w, axes, stride, pads, spread, dilate, 1, 1)
}

// Pointwise reports whether a convolution with w [K, L, In, Out] is a product of each pixel's channels.
func (n Window) Pointwise(w *Node) bool {
	for i, a := range n {
		if w.Shape().Dimensions[i] != 1 || a.Pad != [2]int{} || a.Stride > 1 || a.Spread > 1 {
			return false
		}
	}
	return true
}

// channels shapes a vector [C] for arithmetic with images.
func channels(v *Node) *Node { return graph.Reshape(v, 1, 1, 1, -1) }

// Linear is y = weight · x + bias on vectors, without the bias if NoBias is set.
type Linear struct {
	Name    string
	In, Out int
	NoBias  bool
	Init    Init
}

// Params lists weight [Out, In] and bias [Out].
func (l Linear) Params() []Param {
	weight := l.Init.Mode.scaled(l.Init.Weight, l.In, l.Out)
	p := []Param{{Name: l.Name + ".weight", Shape: []int{l.Out, l.In}, Init: weight}}
	if !l.NoBias {
		p = append(p, Param{Name: l.Name + ".bias", Shape: []int{l.Out}, Init: l.Init.Mode.scaled(l.Init.Bias, l.In, l.Out)})
	}
	return p
}

// Apply maps x [B, In] to [B, Out].
func (l Linear) Apply(s *Scope, x *Node) *Node {
	y := graph.DotGeneral(x, []int{1}, nil, s.Like(x, l.Name+".weight"), []int{1}, nil)
	if l.NoBias {
		return y
	}
	return Shift(y, graph.Reshape(s.Param(l.Name+".bias"), 1, l.Out))
}

// SiLU returns x / (1 + e^{−x}), entry by entry.
func SiLU(x *Node) *Node {
	wide := Wide(x)
	return narrow(graph.Mul(wide, graph.Sigmoid(wide)), x)
}

// Frequencies returns the n frequencies of EDM's positional embedding,
//
//	f_i = 10000^{−i/(n−e)},  i = 0, ..., n−1
//
// with e = 1 if endpoint is set, so that the last is 1/10000, and 0 otherwise.
func Frequencies(n int, endpoint bool) []float64 {
	f := make([]float64, n)
	last := float64(n)
	if endpoint {
		last--
	}
	for i := range f {
		f[i] = math.Pow(10000, -float64(i)/last)
	}
	return f
}

// Waves returns sin(t·f) and cos(t·f), [B, n] each, of t [B] and frequencies f [n].
func Waves(t, f *Node) (sin, cos *Node) {
	angle := graph.Mul(graph.Reshape(t, -1, 1), graph.Reshape(f, 1, -1))
	return graph.Sin(angle), graph.Cos(angle)
}

// Constants puts values into the graph as a vector of the type of like.
func Constants(like *Node, values []float64) *Node {
	return graph.ConvertDType(graph.Const(like.Graph(), values), like.DType())
}

// Dropout zeroes every entry of x with probability rate and scales the others by 1/(1−rate), in training. Otherwise,
// and at rate zero, it returns x and leaves the random state alone.
func Dropout(s *Scope, x *Node, rate float64) *Node {
	if !s.Training() || rate <= 0 {
		return x
	}
	mask := s.keep(x, rate)
	return graph.Where(mask, narrow(graph.MulScalar(Wide(x), 1/(1-rate)), x), graph.ZerosLike(x))
}

// DropRows zeroes every row of x [B, n] with probability rate, in training, and leaves the others as they are: EDM's
// label dropout.
func DropRows(s *Scope, x *Node, rate float64) *Node {
	if !s.Training() || rate <= 0 {
		return x
	}
	rows := graph.ReduceAndKeep(x, graph.ReduceSum, 1)
	mask := graph.BroadcastToDims(s.keep(rows, rate), x.Shape().Dimensions...)
	return graph.Where(mask, x, graph.ZerosLike(x))
}

// keep draws a boolean for each entry of like, true with probability 1−rate.
func (s *Scope) keep(like *Node, rate float64) *Node {
	var u *Node
	s.RNG, u = graph.RandomUniform(s.RNG, Wide(like).Shape())
	return graph.GreaterOrEqual(u, graph.Scalar(u.Graph(), u.DType(), rate))
}

// GroupNorm normalises groups of neighbouring channels over their pixels:
//
//	y = (x − μ_g) / √(σ_g² + Eps) · weight + bias
//
// with μ_g and σ_g² the mean and the biased variance over a group's channels and all pixels. There are min(32,
// Channels/4) groups, EDM's rule.
type GroupNorm struct {
	Name     string
	Channels int
	Eps      float64
}

// Groups returns the number of groups.
func (n GroupNorm) Groups() int { return min(32, n.Channels/4) }

// Params lists weight and bias, [Channels] each.
func (n GroupNorm) Params() []Param {
	return []Param{
		{Name: n.Name + ".weight", Shape: []int{n.Channels}, Init: Ones},
		{Name: n.Name + ".bias", Shape: []int{n.Channels}},
	}
}

// Apply normalises x [B, H, W, Channels].
func (n GroupNorm) Apply(s *Scope, x *Node) *Node {
	return NormalizeGroups(x, n.Groups(), n.Eps, s.Param(n.Name+".weight"), s.Param(n.Name+".bias"))
}

// NormalizeGroups normalises groups of neighbouring channels of x [B, H, W, C] over their pixels, as [GroupNorm] says;
// weight and bias are [C], or nil for one and zero.
//
// It sums over the pixels first, [B, C], and then over a group's channels, so that channels stay the fastest axis of
// large arrays. Scale and weight are one factor per sample and channel.
func NormalizeGroups(x *Node, groups int, eps float64, weight, bias *Node) *Node {
	wide := Wide(x)
	centred := graph.Sub(wide, groupMean(wide, groups))
	scale := graph.Rsqrt(graph.AddScalar(groupMean(graph.Square(centred), groups), eps))
	if weight != nil {
		scale = graph.Mul(scale, channels(weight))
	}
	y := graph.Mul(centred, scale)
	if bias != nil {
		y = graph.Add(y, channels(bias))
	}
	return narrow(y, x)
}

// groupMean returns the mean over pixels and group, [B, 1, 1, C].
func groupMean(x *Node, groups int) *Node {
	d := x.Shape().Dimensions
	size := d[3] / groups
	sum := graph.ReduceSum(x, 1, 2)
	sum = graph.ReduceSum(graph.Reshape(sum, d[0], groups, size), 2)
	mean := graph.MulScalar(sum, 1/float64(d[1]*d[2]*size))
	mean = graph.BroadcastToDims(graph.Reshape(mean, d[0], groups, 1), d[0], groups, size)
	return graph.Reshape(mean, d[0], 1, 1, d[3])
}

// NormalizeLast normalises x over its last axes; axes is their number. If centre is set it is a layer norm, and
// otherwise an RMS norm, with μ = 0:
//
//	y = (x − μ) / √(mean (x − μ)² + eps)
//
// It is computed wide and returned in the type of x.
func NormalizeLast(x *Node, axes int, eps float64, centre bool) *Node {
	wide := Wide(x)
	var over []int
	for i := x.Rank() - axes; i < x.Rank(); i++ {
		over = append(over, i)
	}
	if centre {
		wide = graph.Sub(wide, graph.ReduceAndKeep(wide, graph.ReduceMean, over...))
	}
	square := graph.ReduceAndKeep(graph.Square(wide), graph.ReduceMean, over...)
	return narrow(graph.Mul(wide, graph.Rsqrt(graph.AddScalar(square, eps))), x)
}

// Attention is self-attention over pixels:
//
//	[q k v] = 1×1 convolution of x,   y = proj( Σ_k softmax_k(q·k/√c) v_k )
//
// on Heads heads of c = Channels/Heads channels. In EDM's checkpoints the 3·Channels outputs of the first convolution
// are ordered [head][channel][q, k, v], q, k, v fastest.
type Attention struct {
	Name            string // of the block; the convolutions are Name.qkv and Name.proj
	Channels, Heads int
	InitQKV         Init
	InitProj        Init
}

func (a Attention) qkv() Conv2D {
	return Conv2D{Name: a.Name + ".qkv", In: a.Channels, Out: 3 * a.Channels, Kernel: 1, Init: a.InitQKV}
}

func (a Attention) proj() Conv2D {
	return Conv2D{Name: a.Name + ".proj", In: a.Channels, Out: a.Channels, Kernel: 1, Init: a.InitProj}
}

// Params lists the tensors of Name.qkv and Name.proj.
func (a Attention) Params() []Param { return append(a.qkv().Params(), a.proj().Params()...) }

// Apply maps x [B, H, W, Channels], already normalised, to the same shape. The residual sum is the caller's.
func (a Attention) Apply(s *Scope, x *Node) *Node {
	d := x.Shape().Dimensions
	size := a.Channels / a.Heads
	x = graph.Reshape(x, d[0], d[1]*d[2], a.Channels)

	// The weight is small and the image large, so q, k and v are separated in the weight.
	w := graph.Reshape(s.Like(x, a.Name+".qkv.weight"), a.Channels, a.Channels, 3)
	b := graph.Reshape(s.Param(a.Name+".qkv.bias"), a.Channels, 3)
	part := func(i int) *Node {
		wi := graph.Reshape(graph.SliceAxis(w, 2, graph.AxisElem(i)), a.Channels, a.Channels)
		bi := graph.Reshape(graph.SliceAxis(b, 1, graph.AxisElem(i)), 1, 1, a.Channels)
		y := Shift(graph.DotGeneral(x, []int{2}, nil, wi, []int{0}, nil), bi)
		return graph.Reshape(y, d[0], d[1]*d[2], a.Heads, size)
	}
	y := Attend(part(0), part(1), part(2), 1/math.Sqrt(float64(size)), nil)
	return a.proj().Apply(s, graph.Reshape(y, d...))
}

// Attend returns Σ_k softmax_k(scale q·k + mask) v_k for q [B, N, heads, c], k and v [B, M, heads, c], shaped as q. The
// mask is nil or can be broadcast to [B, heads, N, M]. The softmax is computed wide.
func Attend(q, k, v *Node, scale float64, mask *Node) *Node {
	k = graph.MulScalar(k, scale)
	weights := Wide(graph.DotGeneral(q, []int{3}, []int{0, 2}, k, []int{3}, []int{0, 2})) // [B, head, query, key]
	if mask != nil {
		weights = graph.Add(weights, mask)
	}
	y := graph.DotGeneral(narrow(graph.Softmax(weights, -1), q), []int{3}, []int{0, 1}, v, []int{1}, []int{0, 2})
	return graph.TransposeAllAxes(y, 0, 2, 1, 3) // from [B, head, query, c]
}
