package nn

import "github.com/gomlx/gomlx/pkg/core/graph"

// GroupNorm normalises groups of neighbouring channels over their pixels:
//
//	y = (x − μ_g) / √(σ_g² + Eps) · weight + bias
//
// with μ_g and σ_g² the mean and the biased variance over a group's channels and
// all pixels. There are min(32, Channels/4) groups, EDM's rule.
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
		{Name: n.Name + ".weight", Shape: []int{n.Channels}, Init: ones},
		{Name: n.Name + ".bias", Shape: []int{n.Channels}},
	}
}

// Apply normalises x [B, H, W, Channels].
func (n GroupNorm) Apply(s *Scope, x *Node) *Node {
	return NormalizeGroups(x, n.Groups(), n.Eps, s.Param(n.Name+".weight"), s.Param(n.Name+".bias"))
}

// NormalizeGroups normalises groups of neighbouring channels of x [B, H, W, C] over their
// pixels, as [GroupNorm] says; weight and bias are [C], or nil for one and zero.
//
// Sums run over the pixels first, [B, C], and over a group's channels then, so
// that channels stay the fastest axis of everything large; the scale and the
// weight are joined to one factor per sample and channel.
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

// NormalizeLast normalises x over its last axes axes, with the mean taken off where centre
// is set (a layer norm) and as it is where not (an RMS norm):
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
