package graphnet

import "github.com/gomlx/gomlx/pkg/core/graph"

func slicings() map[string]rule {
	return map[string]rule{
		"slice.Tensor": slice, "select.int": selectOne, "narrow.default": narrowTo, "split_with_sizes.default": split,
		"split.Tensor": split, "chunk.default": split, "unbind.int": unbind,
	}
}

// cut returns entries from … to−1 of PyTorch's axis a, every step-th.
func cut(x value, a, from, to, step int) value {
	if from == 0 && to == x.dims()[a] && step == 1 {
		return x
	}
	if from < 0 || to <= from || to > x.dims()[a] || step < 1 {
		refuse("entries %d to %d by %d of axis %d are not in %v", from, to, step, a, x.dims())
	}
	return x.with(graph.SliceAxis(x.n, x.at[a], graph.AxisRange(from, to).Stride(step)))
}

func slice(c *call) value {
	x := c.tensor("self")
	a := c.axis("dim", 0, x.rank())
	n := x.dims()[a]
	clip := func(i int) int {
		if i < 0 {
			i += n
		}
		return max(0, min(i, n))
	}
	return cut(x, a, clip(c.intOr("start", 0)), clip(c.intOr("end", n)), c.intOr("step", 1))
}

func narrowTo(c *call) value {
	x := c.tensor("self")
	start := c.int("start")
	return cut(x, c.axis("dim", 0, x.rank()), start, start+c.int("length"), 1)
}

func selectOne(c *call) value {
	x := c.tensor("self")
	a := c.axis("dim", 0, x.rank())
	i := axis(c.int("index"), x.dims()[a])
	return drop(cut(x, a, i, i+1, 1), []int{a})
}

func split(c *call) value {
	x := c.tensor("self")
	a := c.axis("dim", 0, x.rank())
	n := x.dims()[a]
	sizes := c.ints("split_sizes")
	if len(sizes) == 0 {
		each := c.intOr("split_size", 0)
		if c.has("chunks") {
			k := max(c.int("chunks"), 1)
			each = (n + k - 1) / k
		}
		if each < 1 || n/each > maxParts {
			refuse("%v cannot be split along axis %d", x.dims(), a)
		}
		for from := 0; from < n; from += each {
			sizes = append(sizes, min(each, n-from))
		}
	}
	var out value
	from := 0
	for _, s := range sizes {
		if s < 1 || from+s > n {
			refuse("%v cannot be split along axis %d into %v", x.dims(), a, sizes)
		}
		out.parts = append(out.parts, cut(x, a, from, from+s, 1))
		from += s
	}
	if from != n {
		refuse("%v cannot be split along axis %d into %v", x.dims(), a, sizes)
	}
	return out
}

func unbind(c *call) value {
	x := c.tensor("self")
	a := c.axis("dim", 0, x.rank())
	n := x.dims()[a]
	if n > maxParts {
		refuse("%d parts; at most %d", n, maxParts)
	}
	var out value
	for i := range n {
		out.parts = append(out.parts, drop(cut(x, a, i, i+1, 1), []int{a}))
	}
	return out
}
