package graphnet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

var rules map[string]rule

func init() { // of functions that, through build, need the table
	rules = map[string]rule{opInput: input, opParam: param, opRatios: addRatios, "getitem": getItem}
	for _, family := range []map[string]rule{
		elementwise(), comparisons(), convolutions(), normalisations(), attentions(), products(), shapings(),
		slicings(), indices(),
		reductions(), creations(), resamplings(),
	} {
		maps.Copy(rules, family)
	}
}

// checkKnown names every operation that has no rule, with the modules it comes from, in one error.
func (p *program) checkKnown() error {
	from := map[string][]string{}
	for _, o := range p.nodes {
		if rules[o.op] != nil {
			continue
		}
		if modules := from[o.op]; len(modules) < 3 && (!slices.Contains(modules, o.module)) {
			from[o.op] = append(modules, o.module)
		}
	}
	if len(from) == 0 {
		return nil
	}
	var out []string
	for _, op := range slices.Sorted(maps.Keys(from)) {
		at := strings.Join(slices.DeleteFunc(from[op], func(m string) bool { return m == "" }), ", ")
		if at != "" {
			at = " (in " + at + ")"
		}
		out = append(out, shorten(op)+at)
		if len(out) == 50 {
			break
		}
	}
	return graphError("%d operations have no rule: %s. Write the module without them, or keep it in the notebook "+
		"(docs/networks.md)", len(from), strings.Join(out, "; "))
}

func param(c *call) value {
	n := c.b.s.Param(c.o.target)
	if k := kinds[c.o.dtype]; k != float {
		n = graph.ConvertDType(n, c.b.dtype(k))
	}
	if n.Rank() == 4 {
		return stored(n, 2, 3, 1, 0)
	}
	return plain(n)
}

// input returns what the model gives. The class is asked for as label, the number with none
// (−1 where that is not given) for none, or as onehot, zeros for none.
func input(c *call) value {
	b := c.b
	switch c.o.target {
	case "sample":
		return image(b.in.z)
	case "noise":
		return plain(b.in.noise)
	case "onehot", "label":
		if b.label == nil {
			refuse("the input %s needs label_dim", c.o.target)
		}
		if c.o.target == "onehot" {
			return plain(b.label)
		}
		return plain(b.index(c.intOr("none", -1)))
	}
	refuse("target must be sample, noise, label or onehot, got %q", shorten(c.o.target))
	return value{}
}

// index returns Σ_k k·onehot_k, or none where onehot is zero.
func (b *builder) index(none int) *Node {
	d := b.label.Shape()
	k := graph.Iota(b.g, d, 1)
	number := graph.ReduceSum(graph.Mul(b.label, k), 1)
	missing := graph.OneMinus(graph.ReduceSum(b.label, 1))
	return graph.ConvertDType(graph.Add(number, graph.MulScalar(missing, float64(none))), b.dtype(integer))
}

// ratioWeight names the weight of the i-th place where the ratios enter.
func ratioWeight(i int) string { return fmt.Sprintf("ratio_embedding.%d.weight", i) }

func addRatios(c *call) value {
	x := c.floating("self")
	if x.rank() != 2 {
		refuse("the ratios are added to an embedding [B, E], got shape %v", x.dims())
	}
	if c.b.in.ratios == nil {
		return x
	}
	w := c.b.s.Param(ratioWeight(c.int("index")))
	return plain(graph.Add(x.plain(), graph.DotGeneral(c.b.in.ratios, []int{1}, nil, w, []int{1}, nil)))
}

func getItem(c *call) value {
	r, ok := c.o.args["of"].(ref)
	if !ok {
		refuse("of must be a node with several results")
	}
	parts, i := c.b.values[r].parts, c.int("index")
	if i < 0 || i >= len(parts) {
		refuse("there is no result %d of %d", i, len(parts))
	}
	return parts[i]
}
