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
//
// Sums run over the pixels first, [B, C], and over a group's channels then, so
// that channels stay the fastest axis of everything large; the scale and the
// weight are joined to one factor per sample and channel.
func (n GroupNorm) Apply(s *Scope, x *Node) *Node {
	d := x.Shape().Dimensions
	wide := Wide(x)
	centred := graph.Sub(wide, n.groupMean(wide, d))
	variance := n.groupMean(graph.Square(centred), d)
	scale := graph.Mul(graph.Rsqrt(graph.AddScalar(variance, n.Eps)), channels(s.Param(n.Name+".weight")))
	return narrow(graph.Add(graph.Mul(centred, scale), channels(s.Param(n.Name+".bias"))), x)
}

// groupMean returns the mean over pixels and group, [B, 1, 1, C].
func (n GroupNorm) groupMean(x *Node, d []int) *Node {
	groups, size := n.Groups(), n.Channels/n.Groups()
	sum := graph.ReduceSum(x, 1, 2)
	sum = graph.ReduceSum(graph.Reshape(sum, d[0], groups, size), 2)
	mean := graph.MulScalar(sum, 1/float64(d[1]*d[2]*size))
	mean = graph.BroadcastToDims(graph.Reshape(mean, d[0], groups, 1), d[0], groups, size)
	return graph.Reshape(mean, d[0], 1, 1, n.Channels)
}
