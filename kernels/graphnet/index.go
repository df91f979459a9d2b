package graphnet

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
)

// rowsOf returns table[i] for integers i of any shape: a product with a one-hot matrix, which can be differentiated any
// number of times. An index outside the table gives zeros.
func (b *builder) rowsOf(table, i value) value {
	d := table.dims()
	if i.n.DType().IsFloat() || len(d) < 1 || d[0] > maxRows {
		refuse("cannot look up %s indices in a table %v", i.n.DType(), d)
	}
	at := graph.Reshape(i.inTorchOrder(), -1)
	// A one-hot matrix of all indices must fit as a tensor of the file would.
	if float64(at.Shape().Size())*float64(d[0]) > maxElements {
		refuse("%d indices of a table of %d rows are too many", at.Shape().Size(), d[0])
	}
	values := graph.Reshape(table.inTorchOrder(), d[0], -1)
	y := graph.Dot(graph.OneHot(at, d[0], values.DType()), values)
	return torchOrder(graph.Reshape(y, append(i.dims(), d[1:]...)...))
}

func embedding(c *call) value { return c.b.rowsOf(c.floating("weight"), c.tensor("indices")) }

func indexSelect(c *call) value {
	x, i := c.floating("self"), c.tensor("index")
	a := c.axis("dim", 0, x.rank())
	return moved(c.b.rowsOf(moved(x, a, 0), i), 0, a)
}

// moved brings axis from to place to.
func moved(x value, from, to int) value {
	axes := slices.Delete(count(x.rank()), from, from+1)
	return permuted(x, slices.Insert(axes, to, from))
}

// indexTensor indexes one axis with a tensor of integers; the others are taken whole.
func indexTensor(c *call) value {
	x := c.floating("self")
	given := c.list("indices")
	isTensor := func(a any) bool { return a != nil }
	at := slices.IndexFunc(given, isTensor)
	if at < 0 || at >= x.rank() || slices.ContainsFunc(given[at+1:], isTensor) {
		refuse("indices must hold one tensor, of one axis")
	}
	i := c.asTensor("indices", given[at])
	if kindOf(i.n.DType()) != integer {
		refuse("indices must be integers, got %s", i.n.DType())
	}
	// Negative indices count from the end.
	n := x.dims()[at]
	i.n = graph.Where(graph.LessThan(i.n, graph.ZerosLike(i.n)), graph.AddScalar(i.n, float64(n)), i.n)
	y := c.b.rowsOf(moved(x, at, 0), i)
	// The indices' axes go where the indexed one was.
	axes, r := count(y.rank()), i.rank()
	return permuted(y, slices.Concat(axes[r:r+at], axes[:r], axes[r+at:]))
}

// cut returns every step-th of the entries from … to−1 of PyTorch's axis a.
func cut(x value, a, from, to, step int) value {
	if from == 0 && to == x.dims()[a] && step == 1 {
		return x
	}
	if from < 0 || to <= from || to > x.dims()[a] || step < 1 {
		refuse("entries %d to %d by %d of axis %d are not in %v", from, to, step, a, x.dims())
	}
	return x.withNode(graph.SliceAxis(x.n, x.order[a], graph.AxisRange(from, to).Stride(step)))
}

func slice(c *call) value {
	x := c.tensor("self")
	a, from, to, step := c.span(x)
	return cut(x, a, from, to, step)
}

// span returns an axis of x and the entries of it that arguments name: from … to−1, every step-th.
func (c *call) span(x value) (a, from, to, step int) {
	a = c.axis("dim", 0, x.rank())
	n := x.dims()[a]
	clip := func(i int) int {
		if i < 0 {
			i += n
		}
		return max(0, min(i, n))
	}
	return a, clip(c.intOr("start", 0)), clip(c.intOr("end", n)), c.intOr("step", 1)
}

// sliceScatter returns self with src in the place of the entries that slice would take.
func sliceScatter(c *call) value {
	x, src := c.tensor("self"), c.tensor("src")
	a, from, to, step := c.span(x)
	d := cut(x, a, from, to, step).dims()
	if !slices.Equal(src.dims(), d) {
		refuse("src must have shape %v, got %v", d, src.dims())
	}
	n, size := graph.ConvertDType(src.inOrderOf(x), x.n.DType()), x.dims()[a]
	if slices.Equal(d, x.dims()) {
		return x.withNode(n)
	}
	place := x.order[a]
	mask := graph.Ones(c.b.g, shapes.Make(c.b.wide, d[a]))
	mask = graph.GreaterThan(autodiff.Embed(mask, 0, from, step, size), graph.ScalarZero(c.b.g, c.b.wide))
	mask = graph.ExpandAndBroadcast(mask, x.n.Shape().Dimensions, slices.Delete(count(x.rank()), place, place+1))
	return x.withNode(graph.Where(mask, autodiff.Embed(n, place, from, step, size), x.n))
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
