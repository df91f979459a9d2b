package graphnet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/gradcheck"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// ruleCase is one use of a rule: its tensors, by argument, and its other arguments as JSON. The sizes of the operands
// are PyTorch's; positive makes entries of (0.5, 1.5) of those of (−1, 1).
type ruleCase struct {
	tensors  []string
	sizes    [][]int
	args     string
	shape    []int // that the file declares; nil for several results
	positive bool
	answer   string // of tensors 0, 1, 2, …
}

// differentiable holds a use of each rule, at least: operations, their tensors with their sizes, other arguments, and
// the shape of the result.
const differentiable = `
_native_batch_norm_legit_no_training.default input 2,3,2 weight 3 bias 3 running_mean 3 running_var 3 positive = parts
_adaptive_avg_pool2d.default,adaptive_avg_pool2d.default self 2,3,4,6 {"output_size":[2,3]} = 2,3,2,3
_softmax.default self 2,3,4 {"dim":-1} = 2,3,4
_to_copy.default,abs.default,alias.default,clone.default,contiguous.default,cos.default,elu.default self 2,3 = 2,3
flatten.using_ints,reshape.default,unflatten.int,view.default self 2,3,4 = 2,12
_upsample_nearest_exact1d.vec input 2,3,5 = 2,3,3
_upsample_nearest_exact2d.vec,_upsample_nearest_exact3d.vec input 2,1,3,4 = 2,1,5,3
adaptive_avg_pool1d.default self 2,3,6 {"output_size":[2]} = 2,3,2
adaptive_avg_pool2d.default self 2,2,5,4 {"output_size":[2,3]} = 2,2,2,3
add.Scalar,mul.Scalar,sub.Scalar self 2,3 {"other":2} = 2,3
add.Tensor other 2,3 {"self":0.5,"alpha":2} = 2,3
add.Tensor self 2,3,4 other 4 {"alpha":0.5} = 2,3,4
add.Tensor self 3,1 other 2,3,4 = 2,3,4
addmm.default self 4 mat1 2,3 mat2 3,4 {"alpha":0.5,"beta":2} = 2,4
amax.default,amin.default self 2,3,4 {"dim":[1]} = 2,4
avg_pool1d.default self 2,3,6 {"kernel_size":[3],"stride":[2],"padding":[1]} = 2,3,3
avg_pool2d.default self 2,2,4,5 {"kernel_size":[3,2],"stride":[1,2],"padding":[1,0],"count_include_pad":false} = 2,2,4,2
avg_pool2d.default self 2,3,4,6 {"kernel_size":[2,3],"stride":[2,3]} = 2,3,2,2
avg_pool3d.default,adaptive_avg_pool3d.default self 2,2,4,2,3 {"kernel_size":[2,1,3],"output_size":[2,2,1]} = 2,2,2,2,1
bmm.default self 2,2,3 mat2 2,3,4 = 2,2,4
cat.default a 2,3 b 2,4 {"tensors":["%a","%b"],"dim":1} = 2,7
chunk.default self 2,3,4 {"chunks":2,"dim":-1} = parts
clamp.default self 2,3 {"min":-0.4,"max":0.3} = 2,3
constant_pad_nd.default self 2,3,4 {"pad":[1,2,-1,0]} = 2,2,7
conv2d.default input 2,4,5,6 weight 3,4,3,3 bias 3 {"stride":[2,1],"padding":[1,0]} = 2,3,3,4
conv2d.default input 2,4,5,6 weight 4,1,3,3 bias 4 {"padding":[2,2],"dilation":[2,2],"groups":4} = 2,4,5,6
conv2d.default input 2,4,5,6 weight 4,1,3,3 bias 4 {"stride":[2,2],"padding":[1,1],"groups":4} = 2,4,3,3
conv2d.default input 2,4,5,6 weight 6,2,1,1 bias 6 {"groups":2} = 2,6,5,6
conv_transpose2d.input input 2,4,3,4 weight 4,1,4,4 bias 4 {"stride":[2,2],"padding":[1,1],"groups":4} = 2,4,6,8
conv_transpose2d.input input 2,4,3,4 weight 4,3,2,3 bias 6 {"stride":[2,1],"groups":2} = 2,6,6,6
conv_transpose2d.input input 2,4,5,6 weight 4,3,3,3 {"stride":[2,2],"padding":[1,1],"output_padding":[1,0]} = 2,3,10,11
convolution.default input 2,2,3,4,3 weight 3,2,2,3,1 bias 3 {"stride":[1,2,1],"padding":[1,1,0]} = 2,3,4,2,3
convolution.default input 2,4,3 weight 4,2,3 bias 4 {"stride":[2],"padding":[1],"transposed":true,"groups":2} = 2,4,5
convolution.default input 2,4,5 weight 4,1,3 {"padding":[2],"dilation":[2],"groups":4} = 2,4,5
convolution.default input 2,4,5 weight 6,2,1 {"groups":2} = 2,6,5
convolution.default input 2,4,5,6 weight 3,4,3,3 bias 3 {"padding":[1,1],"transposed":false} = 2,3,5,6
copy.default self 2,3 src 1 = 2,3
div.Scalar self 2,3 {"other":3} = 2,3
div.Tensor other 2,3 positive {"self":2} = 2,3
div.Tensor self 2,3,4 other 3,1 positive = 2,3,4
dropout.default input 2,3 {"p":0.5,"train":false} = 2,3
einsum.default a 2,3,4 b 4,5 {"equation":"bij,jk->bik","tensors":["%a","%b"]} = 2,3,5
einsum.default a 2,3,4 {"equation":"abc->cab","tensors":["%a"]} = 4,2,3
embedding.default weight 5,3 {"indices":"%index"} = 4,3
erf.default,exp.default,expm1.default,gelu.default,lift_fresh_copy.default,mish.default,neg.default self 2,3 = 2,3
expand.default self 2,1,3 = 2,2,3
flip.default self 2,3,4 {"dims":[0,-1]} = 2,3,4
gelu.default self 2,3 {"approximate":"tanh"} = 2,3
group_norm.default input 2,4,3 weight 4 bias 4 {"num_groups":2,"eps":0.5} = 2,4,3
group_norm.default input 2,4,3,2 weight 4 bias 4 {"num_groups":2,"eps":0.5} = 2,4,3,2
hardtanh.default self 2,3 {"min_val":-0.4,"max_val":0.3} = 2,3
index.Tensor self 2,5,3 {"indices":[null,"%index"]} = 2,4,3
index.Tensor self 5,2 {"indices":["%index"]} = 4,2
index_select.default self 2,5,3 {"dim":1,"index":"%index"} = 2,4,3
instance_norm.default input 2,2,3,2 weight 2 bias 2 {"use_input_stats":true,"eps":0.5} = 2,2,3,2
layer_norm.default input 2,3,4 weight 4 bias 4 {"normalized_shape":[4],"eps":0.5} = 2,3,4
leaky_relu.default self 2,3 {"negative_slope":0.2} = 2,3
linear.default input 2,3,4 weight 5,4 bias 5 = 2,3,5
log.default,log1p.default,reciprocal.default,rsqrt.default,sqrt.default self 2,3 positive = 2,3
matmul.default self 1,3,2,3 other 2,1,3,4 = 2,3,2,4
matmul.default self 2,2,2,3 other 2,2,3,4 = 2,2,2,4
matmul.default self 2,2,2,3 other 3,4 = 2,2,2,4
matmul.default self 2,3 other 2,2,3,4 = 2,2,2,4
max_pool1d.default self 2,3,6 {"kernel_size":[3],"stride":[2],"padding":[1]} = 2,3,3
max_pool2d.default self 2,2,4,5 {"kernel_size":[2,2],"ceil_mode":true} = 2,2,2,3
max_pool3d.default self 2,2,4,2,3 {"kernel_size":[2,1,2],"stride":[2,1,1],"dilation":[1,1,2]} = 2,2,2,2,1
maximum.default,minimum.default self 2,3 other 2,3 = 2,3
mean.default self 2,3,4 =
mean.dim self 2,3,4 {"dim":[-1],"keepdim":true} = 2,3,1
mm.default self 2,3 mat2 3,4 = 2,4
mul.Tensor other 2,3 {"self":3} = 2,3
mul.Tensor self 2,3,4 other 3,1 = 2,3,4
pad.default self 2,3,4,6 {"pad":[0,1,0,1],"mode":"constant"} = 2,3,5,7
pad.default self 2,3,4,6 {"pad":[2,-1,3,0],"mode":"replicate"} = 2,3,7,7
pad.default self 2,3,4,6 {"pad":[2,1,3,0],"mode":"circular"} = 2,3,7,9
pad.default self 2,3,4,6 {"pad":[2,1,3,0],"mode":"reflect"} = 2,3,7,9
permute.default self 2,3,4 {"dims":[2,0,1]} = 4,2,3
pixel_shuffle.default self 2,4,2,3 {"upscale_factor":2} = 2,1,4,6
pixel_unshuffle.default self 2,3,4,6 {"downscale_factor":2} = 2,12,2,3
pow.Scalar exponent 2,3 {"self":3} = 2,3
pow.Tensor_Scalar self 2,3 positive {"exponent":-1.5} = 2,3
pow.Tensor_Scalar self 2,3 positive {"exponent":0.3} = 2,3
pow.Tensor_Scalar self 2,3 {"exponent":2} = 2,3
pow.Tensor_Scalar self 2,3 {"exponent":3} = 2,3
relu.default,sigmoid.default,silu.default,sin.default,softplus.default,square.default,tanh.default self 2,3 = 2,3
repeat.default self 2,3 {"repeats":[2,1,3]} = 2,2,9
rms_norm.default input 2,3,4 weight 4 {"normalized_shape":[4],"eps":0.5} = 2,3,4
scaled_dot_product_attention.default query 2,2,3,4 key 2,2,5,4 value 2,2,5,4 = 2,2,3,4
scaled_dot_product_attention.default query 2,3,4 key 2,5,4 value 2,5,2 attn_mask 3,5 {"scale":0.3} = 2,3,2
select.int self 2,3,4 {"dim":1,"index":-1} = 2,4
slice.Tensor self 2,3,4 {"dim":1,"start":-2,"end":9223372036854775807} = 2,2,4
slice.Tensor self 2,3,4 {"dim":2,"step":2} = 2,3,2
slice_scatter.default self 2,3,6 src 2,2,6 {"dim":1,"start":-2,"end":9223372036854775807} = 2,3,6
slice_scatter.default self 2,3,6 src 2,3,2 {"dim":2,"start":1,"end":5,"step":2} = 2,3,6
softmax.int self 2,3,4 {"dim":1} = 2,3,4
split.Tensor self 2,3,4 {"split_size":2,"dim":-1} = parts
split_with_sizes.default self 2,3,4 {"split_sizes":[1,3],"dim":-1} = parts
squeeze.dims self 2,1,3 {"dim":[1]} = 2,3
stack.default a 2,3 b 2,3 {"tensors":["%a","%b"],"dim":1} = 2,2,3
sub.Tensor other 2,3 {"self":1} = 2,3
sub.Tensor self 2,3,4 other 1,4 {"alpha":2} = 2,3,4
sum.dim_IntList self 2,3,4 {"dim":[0,2]} = 3
to.dtype self 2,3 = 2,3
unbind.int self 2,3,4 {"dim":1} = parts
unsqueeze.default self 2,3 {"dim":-1} = 2,3,1
unsqueeze.default self 2,3 {"dim":1} = 2,1,3
upsample_bicubic2d.vec input 2,2,4,3 {"align_corners":false} = 2,2,7,6
upsample_bilinear2d.vec input 2,2,3,4 {"align_corners":false,"scale_factors":[2.0,1.7]} = 2,2,6,6
upsample_bilinear2d.vec input 2,2,3,4 {"align_corners":true} = 2,2,5,2
upsample_linear1d.vec input 2,3,5 = 2,3,8
upsample_nearest1d.vec input 2,3,4 = 2,3,8
upsample_nearest2d.default self 2,3,4,6 = 2,3,4,12
upsample_nearest2d.vec input 2,2,3,4 = 2,2,4,3
upsample_nearest2d.vec input 2,3,4,6 = 2,3,8,18
upsample_nearest3d.vec input 2,2,2,3,1 = 2,2,4,3,3
upsample_trilinear3d.vec input 2,1,2,3,2 = 2,1,4,2,3
var.correction self 2,3,4 {"dim":[1,2],"correction":1} = 2
var_mean.correction self 2,3,4 {"dim":[2],"correction":0} = parts
where.self self 2,3,4 other 3,1 {"condition":"%mask"} = 2,3,4`

// ruleCases reads a table of uses, by operation.
func ruleCases(table string) map[string][]ruleCase {
	cases := map[string][]ruleCase{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		use, shape, _ := strings.Cut(strings.TrimSpace(line), " =")
		shape, answer, _ := strings.Cut(shape, ":")
		words := strings.Fields(use)
		c := ruleCase{answer: strings.TrimSpace(answer)}
		for i := 1; i < len(words); i++ {
			switch word := words[i]; {
			case word == "positive":
				c.positive = true
			case strings.HasPrefix(word, "{"):
				c.args = word
			default:
				i++
				c.tensors, c.sizes = append(c.tensors, word), append(c.sizes, sizes(words[i]))
			}
		}
		if shape != " parts" {
			c.shape = sizes(strings.TrimSpace(shape))
		}
		for op := range strings.SplitSeq(words[0], ",") {
			cases[op] = append(cases[op], c)
		}
	}
	return cases
}

func sizes(text string) []int {
	out := []int{}
	if text != "" {
		if err := json.Unmarshal([]byte("["+text+"]"), &out); err != nil {
			panic(err)
		}
	}
	return out
}

// answers holds what PyTorch makes of tensors with entries 0, 1, 2, …
const answers = `
avg_pool1d.default self 1,1,6 {"kernel_size":[3],"stride":[2]} = 1,1,2: 1,3
avg_pool1d.default self 1,1,4 {"kernel_size":[2],"stride":[4],"padding":[1]} = 1,1,2: 0,1.5
avg_pool1d.default self 1,1,6 {"kernel_size":[3]} = 1,1,2: 1,4
pad.default self 1,1,5 {"pad":[2,1],"mode":"reflect"} = 1,1,8: 2,1,0,1,2,3,4,3
pad.default self 1,1,5 {"pad":[2,1],"mode":"circular"} = 1,1,8: 3,4,0,1,2,3,4,0
pad.default self 1,1,5 {"pad":[2,1],"mode":"replicate"} = 1,1,8: 0,0,0,1,2,3,4,4
pad.default self 1,1,2,2 {"pad":[1,0,0,-1],"mode":"constant","value":7} = 1,1,1,3: 7,0,1
max_pool1d.default self 1,1,5 {"kernel_size":[3],"stride":[2],"padding":[1]} = 1,1,3: 1,3,4
max_pool2d.default self 1,1,3,3 {"kernel_size":[2,2],"ceil_mode":true} = 1,1,2,2: 4,5,7,8
avg_pool1d.default self 1,1,5 {"kernel_size":[2],"stride":[2],"padding":[1]} = 1,1,3: 0,1.5,3.5
avg_pool1d.default self 1,1,3 {"kernel_size":2,"stride":1,"padding":1,"count_include_pad":false} = 1,1,4: 0,0.5,1.5,2
adaptive_avg_pool1d.default self 1,1,5 {"output_size":[2]} = 1,1,2: 1,3
upsample_linear1d.vec input 1,1,5 {"align_corners":true} = 1,1,9: 0,0.5,1,1.5,2,2.5,3,3.5,4
upsample_linear1d.vec input 1,1,2 {"align_corners":false,"scale_factors":[2.0]} = 1,1,4: 0,0.25,0.75,1
upsample_bilinear2d.vec input 1,1,2,2 {"align_corners":false} = 1,1,4,1: 0.5,1,2,2.5
upsample_trilinear3d.vec input 1,1,2,1,2 {"align_corners":true} = 1,1,3,1,3: 0,0.5,1,1,1.5,2,2,2.5,3
upsample_bicubic2d.vec input 1,1,2,1 = 1,1,4,1: -0.10546875,0.2265625,0.7734375,1.10546875
upsample_nearest1d.vec input 1,1,5 = 1,1,3: 0,1,3
upsample_nearest3d.vec input 1,1,2,1,1 = 1,1,4,1,2: 0,0,0,0,1,1,1,1
_upsample_nearest_exact1d.vec input 1,1,5 = 1,1,3: 0,2,4
slice_scatter.default self 2,3 src 2,2 {"dim":1,"start":0,"end":9223372036854775807,"step":2} = 2,3: 0,1,1,2,4,3
slice_scatter.default self 3,2 src 1,2 {"dim":0,"start":-2,"end":-1} = 3,2: 0,1,0,1,4,5
copy.default self 2,2 src 2 = 2,2: 0,1,0,1
convolution.default input 1,1,5 weight 1,1,3 {"stride":[2],"padding":[1]} = 1,1,3: 2,8,4
convolution.default input 1,1,2,2,2 weight 1,1,2,1,2 {"padding":[0,0,1]} = 1,1,1,2,3: 12,24,10,20,36,14
convolution.default input 1,2,2 weight 2,1,2 {"stride":[2],"transposed":true,"groups":2} = 1,2,4: 0,0,0,1,4,6,6,9
conv_transpose2d.input input 1,4,1,2 weight 4,1,1,2 {"groups":2} = 1,2,1,3: 4,12,10,52,124,74`

// constantRules have no derivative, or none but zero.
var constantRules = strings.Fields(`input param add_ratios getitem sign.default floor.default
	eq.Scalar eq.Tensor ne.Scalar ne.Tensor lt.Scalar lt.Tensor le.Scalar le.Tensor gt.Scalar gt.Tensor ge.Scalar ge.Tensor
	logical_not.default logical_and.default logical_or.default bitwise_not.default arange.start_step full.default
	full_like.default scalar_tensor.default empty.memory_format empty_permuted.default`)

// TestRulesDifferentiate holds three derivatives of every rule to central differences.
func TestRulesDifferentiate(t *testing.T) {
	cases := ruleCases(differentiable)
	for _, op := range slices.Sorted(maps.Keys(rules)) {
		if cases[op] == nil && !slices.Contains(constantRules, op) {
			t.Errorf("the rule %s has no case here", op)
		}
	}
	dev := devicetest.PureGo(t)
	for _, op := range slices.Sorted(maps.Keys(cases)) {
		for i, c := range cases[op] {
			t.Run(fmt.Sprintf("%s/%d", op, i), func(t *testing.T) {
				gradcheck.Check(t, dev, t.Name(), c.sizes,
					func(x []*graph.Node) *graph.Node { return c.apply(op, x) })
			})
		}
	}
}

// TestRulesAnswer holds rules to PyTorch's answers.
func TestRulesAnswer(t *testing.T) {
	dev := devicetest.PureGo(t)
	for op, cases := range ruleCases(answers) {
		for _, c := range cases {
			var in []devicetest.Input
			for _, size := range c.sizes {
				flat := make([]float64, product(size))
				for i := range flat {
					flat[i] = float64(i)
				}
				in = append(in, devicetest.Input{Flat: flat, Dims: size})
			}
			got := devicetest.Compute(t, dev, fmt.Sprint("answer ", op, c), func(x []*graph.Node) []*graph.Node {
				return []*graph.Node{c.apply(op, x)}
			}, in...)[0]
			var want []float64
			if err := json.Unmarshal([]byte("["+c.answer+"]"), &want); err != nil {
				t.Fatal(err)
			}
			if !floats.EqualApprox(got, want, 1e-12) {
				t.Errorf("%s of %v with %s is %v; want %v", op, c.sizes, c.args, got, want)
			}
		}
	}
}

// TestLargestOfEqualPixels: the first one takes the gradient, as in PyTorch.
func TestLargestOfEqualPixels(t *testing.T) {
	c := ruleCases(`max_pool1d.default self 1,1,3 {"kernel_size":[3]} = 1,1,1`)["max_pool1d.default"][0]
	got := devicetest.Compute(t, devicetest.PureGo(t), "equal pixels", func(x []*graph.Node) []*graph.Node {
		return graph.Gradient(graph.ReduceAllSum(c.apply("max_pool1d.default", x)), x...)
	}, devicetest.Input{Flat: []float64{5, 5, 5}, Dims: []int{1, 1, 3}})[0]
	if !slices.Equal(got, []float64{1, 0, 0}) {
		t.Errorf("the gradient is %v", got)
	}
}

// apply appends the operation; several results are joined.
func (c ruleCase) apply(op string, x []*graph.Node) *graph.Node {
	g := x[0].Graph()
	named := map[string]*graph.Node{
		"index": graph.Const(g, []int64{3, 0, 4, 3}), "mask": graph.Const(g, []bool{true, false, false, true}),
	}
	args := map[string]any{}
	for i, name := range c.tensors {
		named[name] = x[i]
		if c.positive {
			named[name] = graph.AddScalar(graph.MulScalar(x[i], 0.5), 1)
		}
		args[name] = "%" + name
	}
	dtype := "float64"
	if c.shape == nil {
		dtype = ""
	}
	v := applied(g, op, named, args, c.args, c.shape, dtype)
	if v.parts == nil {
		return v.inTorchOrder()
	}
	sum := graph.MulScalar(graph.ReduceAllSum(graph.Sin(v.parts[0].inTorchOrder())), 0.3)
	for i, p := range v.parts[1:] {
		sum = graph.Add(sum, graph.MulScalar(graph.ReduceAllSum(graph.Sin(p.inTorchOrder())), 0.3/float64(i+2)))
	}
	return sum
}

// applied appends an operation on named values, with arguments and more of them as JSON.
func applied(g *graph.Graph, op string, named map[string]*graph.Node, args map[string]any, more string, shape []int,
	dtype string,
) value {
	if more != "" {
		if err := json.Unmarshal([]byte(more), &args); err != nil {
			panic(err)
		}
	}
	r := &reader{places: map[string]ref{}}
	b := &builder{g: g, batch: 2, wide: dtypes.Float64, p: &r.program, s: nn.NewScope(nil, nil)}
	for name, n := range named {
		r.places[name] = ref(len(b.values))
		b.values = append(b.values, torchOrder(n))
	}
	b.p.nodes = make([]node, len(b.values))
	o := &node{Name: op, Op: op, Args: args, DType: dtype}
	for name, a := range args {
		var err error
		if o.Args[name], err = r.argument(a, 0); err != nil {
			panic(err)
		}
	}
	for _, n := range shape {
		o.Shape = append(o.Shape, dim{n: n})
	}
	v, err := b.apply(o)
	if err != nil {
		panic(err)
	}
	return v
}

// TestNumbersFirst: a number may stand before the tensor, and has the type that the file declares.
func TestNumbersFirst(t *testing.T) {
	dev := devicetest.PureGo(t)
	for _, c := range []struct {
		op, args, dtype string
		want            []float64 // of 0, 1, 2, 3
	}{
		{"sub.Tensor", `{"self":31,"other":"%i"}`, "int64", []float64{31, 30, 29, 28}},
		{"sub.Tensor", `{"self":1,"other":"%i","alpha":2}`, "int64", []float64{1, -1, -3, -5}},
		{"sub.Tensor", `{"self":0.5,"other":"%i"}`, "float32", []float64{0.5, -0.5, -1.5, -2.5}},
		{"add.Tensor", `{"self":1,"other":"%i"}`, "float32", []float64{1, 2, 3, 4}},
		{"mul.Tensor", `{"self":"%i","other":2}`, "float32", []float64{0, 2, 4, 6}},
		{"div.Tensor", `{"self":"%i","other":4}`, "float32", []float64{0, 0.25, 0.5, 0.75}},
	} {
		got := devicetest.Compute(t, dev, c.op+c.args+c.dtype, func(in []*graph.Node) []*graph.Node {
			v := applied(in[0].Graph(), c.op, map[string]*graph.Node{"i": in[0]}, map[string]any{}, c.args, []int{4}, c.dtype)
			return []*graph.Node{graph.ConvertDType(v.inTorchOrder(), dtypes.Float64)}
		}, devicetest.Input{Flat: []int64{0, 1, 2, 3}, Dims: []int{4}})[0]
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s is %v; want %v", c.op, c.args, got, c.want)
		}
	}
}

// TestValueKeepsPlace: permutations, and reshapes of runs that lie together, move no data, and whatever is moved says
// the same as when everything is kept in PyTorch's order.
func TestValueKeepsPlace(t *testing.T) {
	image := value{order: []int{0, 3, 1, 2}}
	dev := devicetest.PureGo(t)
	_, err := dev.Cost("place", func(g *graph.Graph) []*graph.Node {
		image.n = graph.IotaFull(g, shapes.Make(dtypes.Float64, 2, 4, 5, 3)) // [B, H, W, C] of [2, 3, 4, 5]
		tokens := permuted(image.reshape([]int{2, 3, 20}), []int{0, 2, 1})
		if !slices.Equal(tokens.dims(), []int{2, 20, 3}) || !slices.Equal(tokens.order, []int{0, 1, 2}) {
			t.Errorf("tokens of an image have shape %v, stored %v", tokens.dims(), tokens.order)
		}
		back := permuted(tokens, []int{0, 2, 1}).reshape([]int{2, 3, 4, 5})
		if !slices.Equal(back.order, image.order) {
			t.Errorf("the image of tokens is stored %v; want channels last", back.order)
		}
		heads := tokens.reshape([]int{2, 20, 1, 3})
		if got := heads.dims(); !slices.Equal(got, []int{2, 20, 1, 3}) {
			t.Errorf("got %v", got)
		}
		return []*graph.Node{back.n}
	})
	if err != nil {
		t.Fatal(err)
	}
}
