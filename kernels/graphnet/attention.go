package graphnet

import (
	"math"

	lib "github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

func attentions() map[string]rule {
	return map[string]rule{
		"scaled_dot_product_attention.default": attend, "softmax.int": softmax, "_softmax.default": softmax,
	}
}

// attend is Σ_k softmax_k(scale q·k + mask) v_k of q [B, heads, N, c] and k, v [B, heads, M, c].
func attend(c *call) value {
	q, k, v := c.floating("query"), c.floating("key"), c.floating("value")
	if q.rank() == 3 { // without heads
		heads := func(x value) value { d := x.dims(); return x.reshape([]int{d[0], 1, d[1], d[2]}) }
		y := c.attend(heads(q), heads(k), heads(v))
		d := y.dims()
		return y.reshape([]int{d[0], d[2], d[3]})
	}
	if q.rank() != 4 || k.rank() != 4 || v.rank() != 4 {
		refuse("query, key and value must have three or four axes, got %v", q.dims())
	}
	return c.attend(q, k, v)
}

func (c *call) attend(q, k, v value) value {
	if c.bool("is_causal") || c.float("dropout_p", 0) != 0 {
		refuse("is_causal and dropout_p have no rule")
	}
	dq, dk, dv := q.dims(), k.dims(), v.dims()
	if dq[1] != dk[1] || dq[3] != dk[3] || dk[2] != dv[2] || dk[1] != dv[1] {
		refuse("query, key and value have shapes %v, %v and %v", dq, dk, dv)
	}
	var mask *Node
	if m, ok := c.optional("attn_mask"); ok {
		mask = m.raise(4).plain()
		if mask.DType() == lib.Bool {
			zero := graph.Scalar(c.b.g, c.b.wide, 0)
			zero = graph.BroadcastToDims(zero, mask.Shape().Dimensions...)
			mask = graph.Where(mask, zero, graph.AddScalar(zero, -1e30))
		}
		mask = nn.Wide(mask)
	}
	scale := c.float("scale", 1/math.Sqrt(float64(dq[3])))
	return stored(nn.Attend(q.in(0, 2, 1, 3), k.in(0, 2, 1, 3), v.in(0, 2, 1, 3), scale, mask), 0, 2, 1, 3)
}

func softmax(c *call) value {
	x := c.floating("self")
	a := x.at[c.axis("dim", -1, x.rank())]
	return x.with(graph.ConvertDType(graph.Softmax(nn.Wide(x.n), a), x.n.DType()))
}
