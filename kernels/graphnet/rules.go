package graphnet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// rules holds every operation that can be built, by PyTorch's name of it.
var rules map[string]rule

func init() { // of functions that, through build, need the table
	rules = map[string]rule{
		// What is not PyTorch's, or makes no tensor.
		opInput: input, opParam: param, opRatios: addRatios, "getitem": getItem,

		// Constants.
		"arange.start_step": arange, "full.default": full, "full_like.default": full,
		"scalar_tensor.default": full, "empty.memory_format": full, "empty_permuted.default": full,

		// Arithmetic of two operands.
		"add.Tensor": scaled(graph.Add), "add.Scalar": scaled(graph.Add),
		"sub.Tensor": scaled(graph.Sub), "sub.Scalar": scaled(graph.Sub),
		"mul.Tensor": binary(graph.Mul), "mul.Scalar": binary(graph.Mul),
		"div.Tensor": divide, "div.Scalar": divide,
		"maximum.default": binary(graph.Max), "minimum.default": binary(graph.Min),
		"pow.Tensor_Scalar": pow, "pow.Scalar": scalarPow,

		// Functions of one operand.
		"exp.default": unary(graph.Exp), "expm1.default": unary(graph.Expm1),
		"log.default": unary(graph.Log), "log1p.default": unary(graph.Log1P),
		"sin.default": unary(graph.Sin), "cos.default": unary(graph.Cos), "tanh.default": unary(graph.Tanh),
		"sqrt.default": unary(graph.Sqrt), "rsqrt.default": unary(graph.Rsqrt),
		"reciprocal.default": unary(graph.Reciprocal), "square.default": exact(graph.Square),
		"erf.default": unary(graph.Erf), "sigmoid.default": unary(graph.Sigmoid), "floor.default": unary(graph.Floor),
		"neg.default": exact(graph.Neg), "abs.default": exact(graph.Abs), "sign.default": exact(graph.Sign),

		// Activations.
		"relu.default": exact(relu), "leaky_relu.default": leaky, "elu.default": elu, "gelu.default": gelu,
		"silu.default": unary(nn.SiLU), "softplus.default": unary(softplus), "mish.default": unary(mish),
		"hardtanh.default": clamp, "clamp.default": clamp, "dropout.default": dropout,

		// Types, and what changes nothing.
		"_to_copy.default": convert, "to.dtype": convert, "copy.default": replaced,
		"clone.default": same, "alias.default": same, "contiguous.default": same, "lift_fresh_copy.default": same,

		// Comparisons and choices.
		"eq.Scalar": binary(graph.Equal), "eq.Tensor": binary(graph.Equal),
		"ne.Scalar": binary(graph.NotEqual), "ne.Tensor": binary(graph.NotEqual),
		"lt.Scalar": binary(graph.LessThan), "lt.Tensor": binary(graph.LessThan),
		"le.Scalar": binary(graph.LessOrEqual), "le.Tensor": binary(graph.LessOrEqual),
		"gt.Scalar": binary(graph.GreaterThan), "gt.Tensor": binary(graph.GreaterThan),
		"ge.Scalar": binary(graph.GreaterOrEqual), "ge.Tensor": binary(graph.GreaterOrEqual),
		"logical_and.default": logical(graph.LogicalAnd), "logical_or.default": logical(graph.LogicalOr),
		"logical_not.default": not, "bitwise_not.default": not,
		"where.self": where,

		// Layers.
		"conv2d.default": convolution, "conv_transpose2d.input": convolution, "convolution.default": convolution,
		"group_norm.default": groupNorm, "instance_norm.default": instanceNorm,
		"_native_batch_norm_legit_no_training.default": batchNorm,
		"layer_norm.default":                           lastNorm, "rms_norm.default": lastNorm,
		"scaled_dot_product_attention.default": attend, "softmax.int": softmax, "_softmax.default": softmax,
		"upsample_nearest1d.vec": nearest, "upsample_nearest2d.vec": nearest, "upsample_nearest3d.vec": nearest,
		"upsample_nearest2d.default": nearest, "_upsample_nearest_exact1d.vec": nearest,
		"_upsample_nearest_exact2d.vec": nearest, "_upsample_nearest_exact3d.vec": nearest,
		"upsample_linear1d.vec": resample, "upsample_bilinear2d.vec": resample, "upsample_trilinear3d.vec": resample,
		"upsample_bicubic2d.vec": resample,
		"avg_pool1d.default":     average, "avg_pool2d.default": average, "avg_pool3d.default": average,
		"adaptive_avg_pool1d.default": average, "adaptive_avg_pool2d.default": average,
		"adaptive_avg_pool3d.default": average, "_adaptive_avg_pool2d.default": average,
		"max_pool1d.default": largest, "max_pool2d.default": largest, "max_pool3d.default": largest,

		// Products and reductions.
		"linear.default": linear, "mm.default": matmul, "bmm.default": matmul, "matmul.default": matmul,
		"addmm.default": addmm, "einsum.default": einsum, "sum.dim_IntList": reduce(graph.ReduceSum),
		"mean.default": reduce(mean), "mean.dim": reduce(mean),
		"amax.default": reduce(graph.ReduceMax), "amin.default": reduce(graph.ReduceMin),
		"var.correction": variance, "var_mean.correction": varianceAndMean,

		// Shapes.
		"view.default": view, "reshape.default": view, "flatten.using_ints": view, "unflatten.int": view,
		"permute.default": permute, "unsqueeze.default": unsqueeze, "squeeze.dims": squeeze,
		"expand.default": expand, "repeat.default": repeat, "flip.default": flip,
		"cat.default": concatenate, "stack.default": stack, "constant_pad_nd.default": pad, "pad.default": pad,
		"pixel_shuffle.default": pixelShuffle, "pixel_unshuffle.default": pixelUnshuffle,

		// Parts.
		"slice.Tensor": slice, "slice_scatter.default": sliceScatter, "select.int": selectOne,
		"split.Tensor": split, "split_with_sizes.default": split, "chunk.default": split, "unbind.int": unbind,
		"embedding.default": embedding, "index_select.default": indexSelect, "index.Tensor": indexTensor,
	}
}

// checkKnown names every operation that has no rule, with the modules it comes from, in one error.
func (p *program) checkKnown() error {
	from := map[string][]string{}
	for _, o := range p.nodes {
		modules := from[o.Op]
		switch {
		case rules[o.Op] != nil:
		case o.Module == "" || len(modules) == 3 || slices.Contains(modules, o.Module):
			from[o.Op] = modules
		default:
			from[o.Op] = append(modules, shorten(o.Module))
		}
	}
	if len(from) == 0 {
		return nil
	}
	var out []string
	for _, op := range slices.Sorted(maps.Keys(from))[:min(len(from), 50)] {
		text := shorten(op)
		if modules := from[op]; len(modules) > 0 {
			text += " (in " + strings.Join(modules, ", ") + ")"
		}
		out = append(out, text)
	}
	return graphError("%d operations have no rule: %s. Write the module without them, or keep it in the notebook "+
		"(docs/networks.md)", len(from), strings.Join(out, "; "))
}

func param(c *call) value {
	n := c.b.s.Param(c.o.Target)
	if k := kinds[c.o.DType]; k != float {
		n = graph.ConvertDType(n, c.b.dtype(k))
	}
	if n.Rank() == 4 {
		return transposed(n, 2, 3, 1, 0)
	}
	return torchOrder(n)
}

// input returns an input of the network. The class is label, its number, which for no class is none (default −1), or
// onehot, which for no class is zero.
func input(c *call) value {
	b := c.b
	switch c.o.Target {
	case "sample":
		return image(b.z)
	case "noise":
		return torchOrder(b.noise)
	case "onehot", "label":
		if b.label == nil {
			refuse("the input %s needs label_dim", c.o.Target)
		}
		if c.o.Target == "onehot" {
			return torchOrder(b.label)
		}
		return torchOrder(b.index(c.intOr("none", -1)))
	}
	refuse("target must be sample, noise, label or onehot, got %q", shorten(c.o.Target))
	return value{}
}

// index returns Σ_k k·onehot_k, or none if onehot is zero.
func (b *builder) index(none int) *Node {
	d := b.label.Shape()
	k := graph.Iota(b.g, d, 1)
	number := graph.ReduceSum(graph.Mul(b.label, k), 1)
	missing := graph.OneMinus(graph.ReduceSum(b.label, 1))
	return graph.ConvertDType(graph.Add(number, graph.MulScalar(missing, float64(none))), b.dtype(integer))
}

// ratioWeight names the weight of the i-th add_ratios.
func ratioWeight(i int) string { return fmt.Sprintf("ratio_embedding.%d.weight", i) }

func addRatios(c *call) value {
	x := c.floating("self")
	if x.rank() != 2 {
		refuse("the ratios are added to an embedding [B, E], got shape %v", x.dims())
	}
	if c.b.ratios == nil {
		return x
	}
	w := c.b.s.Param(ratioWeight(c.int("index")))
	return torchOrder(graph.Add(x.inTorchOrder(), graph.DotGeneral(c.b.ratios, []int{1}, nil, w, []int{1}, nil)))
}

func getItem(c *call) value {
	r, ok := c.o.Args["of"].(ref)
	if !ok {
		refuse("of must be a node with several results")
	}
	parts, i := c.b.values[r].parts, c.int("index")
	if i < 0 || i >= len(parts) {
		refuse("there is no result %d of %d", i, len(parts))
	}
	return parts[i]
}

// filled returns a constant of the shape and type that the file declares.
func (c *call) filled(v float64) value {
	if c.o.DType == "" {
		refuse("its shape and dtype must be given")
	}
	n := graph.Scalar(c.b.g, c.b.dtype(integer), v)
	switch k := kinds[c.o.DType]; k {
	case float:
		n = graph.Scalar(c.b.g, c.b.wide, v)
	case boolean:
		n = graph.Const(c.b.g, v != 0)
	}
	if to := c.target(); len(to) > 0 {
		n = graph.BroadcastToDims(n, to...)
	}
	return torchOrder(n)
}

// full fills with fill_value, or s; what is made empty, with zeros.
func full(c *call) value {
	if on, ok := c.o.Args["fill_value"].(bool); ok && on {
		return c.filled(1)
	} else if ok {
		return c.filled(0)
	}
	return c.filled(c.float("fill_value", c.float("s", 0)))
}

// arange returns start, start + step, …; the file declares the number of entries.
func arange(c *call) value {
	if len(c.o.Shape) != 1 || kinds[c.o.DType] == boolean {
		refuse("its shape must have one axis, got %v", c.o.Shape)
	}
	i := graph.Iota(c.b.g, shapes.Make(c.b.dtype(kinds[c.o.DType]), c.target()...), 0)
	i = scale(i, c.float("step", 1))
	if start := c.float("start", 0); start != 0 {
		i = graph.AddScalar(i, start)
	}
	return torchOrder(i)
}
