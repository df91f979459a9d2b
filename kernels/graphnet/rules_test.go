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

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/internal/gradcheck"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// ruleCase is one use of a rule: its tensors, by argument, and its other arguments as JSON. The sizes of the operands
// are PyTorch's; positive makes entries of (0.5, 1.5) of those of (−1, 1).
type ruleCase struct {
	tensors  []string
	sizes    [][]int
	args     string
	shape    []int // that the file declares
	positive bool
}

func one(args string, shape []int, sizes ...[]int) ruleCase {
	return ruleCase{tensors: []string{"self", "other"}[:len(sizes)], sizes: sizes, args: args, shape: shape}
}

// numberFirst is a use with a number in place of self.
func numberFirst(args string, size []int) ruleCase {
	return ruleCase{tensors: []string{"other"}, sizes: [][]int{size}, args: args, shape: size}
}

func image4(args string, shape []int, size ...int) ruleCase {
	return ruleCase{tensors: []string{"input"}, sizes: [][]int{size}, args: args, shape: shape}
}

func positiveOf(c ruleCase) ruleCase { c.positive = true; return c }

// differentiable are the rules with a use each, at least.
func differentiable() map[string][]ruleCase {
	v, w := []int{2, 3}, []int{2, 3, 4}
	img := []int{2, 3, 4, 6}
	conv := func(args string, out []int, kernel []int, bias int) ruleCase {
		return ruleCase{
			tensors: []string{"input", "weight", "bias"}, sizes: [][]int{{2, 4, 5, 6}, kernel, {bias}},
			args: args, shape: out,
		}
	}
	cases := map[string][]ruleCase{
		"add.Tensor": {
			one(`{"alpha":0.5}`, w, w, []int{4}), one(``, w, []int{3, 1}, w), numberFirst(`{"self":0.5,"alpha":2}`, v),
		},
		"sub.Tensor":      {one(`{"alpha":2}`, w, w, []int{1, 4}), numberFirst(`{"self":1}`, v)},
		"mul.Tensor":      {one(``, w, w, []int{3, 1}), numberFirst(`{"self":3}`, v)},
		"div.Tensor":      {positiveOf(one(``, w, w, []int{3, 1})), positiveOf(numberFirst(`{"self":2}`, v))},
		"maximum.default": {one(``, v, v, v)}, "minimum.default": {one(``, v, v, v)},
		"pow.Tensor_Scalar": {
			one(`{"exponent":2}`, v, v), one(`{"exponent":3}`, v, v), positiveOf(one(`{"exponent":-1.5}`, v, v)),
			positiveOf(one(`{"exponent":0.3}`, v, v)),
		},
		"pow.Scalar":       {{tensors: []string{"exponent"}, sizes: [][]int{v}, args: `{"self":3}`, shape: v}},
		"gelu.default":     {one(``, v, v), one(`{"approximate":"tanh"}`, v, v)},
		"clamp.default":    {one(`{"min":-0.4,"max":0.3}`, v, v)},
		"hardtanh.default": {one(`{"min_val":-0.4,"max_val":0.3}`, v, v)},
		"where.self": {{
			tensors: []string{"self", "other"}, sizes: [][]int{w, {3, 1}}, args: `{"condition":"%mask"}`, shape: w,
		}},
		"conv2d.default": {
			conv(`{"stride":[2,1],"padding":[1,0]}`, []int{2, 3, 3, 4}, []int{3, 4, 3, 3}, 3),
			conv(`{"padding":[2,2],"dilation":[2,2],"groups":4}`, []int{2, 4, 5, 6}, []int{4, 1, 3, 3}, 4),
			conv(`{"stride":[2,2],"padding":[1,1],"groups":4}`, []int{2, 4, 3, 3}, []int{4, 1, 3, 3}, 4),
			conv(`{"groups":2}`, []int{2, 6, 5, 6}, []int{6, 2, 1, 1}, 6),
		},
		"conv2d.padding": {conv(`{"padding":"same"}`, []int{2, 3, 5, 6}, []int{3, 4, 2, 3}, 3)},
		"conv_transpose2d.input": {conv(`{"stride":[2,2],"padding":[1,1],"output_padding":[1,0]}`,
			[]int{2, 3, 10, 11}, []int{4, 3, 3, 3}, 3)},
		"convolution.default": {conv(`{"padding":[1,1],"transposed":false}`, []int{2, 3, 5, 6},
			[]int{3, 4, 3, 3}, 3)},
		"group_norm.default": {
			normal(`{"num_groups":2,"eps":0.5}`, []int{2, 4, 3, 2}, 4),
			normal(`{"num_groups":2,"eps":0.5}`, []int{2, 4, 3}, 4),
		},
		"instance_norm.default": {normal(`{"use_input_stats":true,"eps":0.5}`, []int{2, 2, 3, 2}, 2)},
		"layer_norm.default":    {normal(`{"normalized_shape":[4],"eps":0.5}`, []int{2, 3, 4}, 4)},
		"rms_norm.default": {{
			tensors: []string{"input", "weight"}, sizes: [][]int{{2, 3, 4}, {4}},
			args: `{"normalized_shape":[4],"eps":0.5}`, shape: w,
		}},
		"linear.default": {{
			tensors: []string{"input", "weight", "bias"},
			sizes:   [][]int{{2, 3, 4}, {5, 4}, {5}}, shape: []int{2, 3, 5},
		}},
		"addmm.default": {{
			tensors: []string{"self", "mat1", "mat2"},
			sizes:   [][]int{{4}, {2, 3}, {3, 4}}, args: `{"alpha":0.5,"beta":2}`, shape: []int{2, 4},
		}},
		"baddbmm.default": {{
			tensors: []string{"self", "batch1", "batch2"},
			sizes:   [][]int{{2, 2, 4}, {2, 2, 3}, {2, 3, 4}}, shape: []int{2, 2, 4},
		}},
		"mm.default": {{
			tensors: []string{"self", "mat2"}, sizes: [][]int{{2, 3}, {3, 4}},
			shape: []int{2, 4},
		}},
		"bmm.default": {{
			tensors: []string{"self", "mat2"}, sizes: [][]int{{2, 2, 3}, {2, 3, 4}},
			shape: []int{2, 2, 4},
		}},
		"matmul.default": {
			one(``, []int{2, 2, 2, 4}, []int{2, 2, 2, 3}, []int{2, 2, 3, 4}),
			one(``, []int{2, 2, 2, 4}, []int{2, 2, 2, 3}, []int{3, 4}),
			one(``, []int{2, 2, 2, 4}, []int{2, 3}, []int{2, 2, 3, 4}),
			one(``, []int{2, 3, 2, 4}, []int{1, 3, 2, 3}, []int{2, 1, 3, 4}),
		},
		"softmax.int":            {one(`{"dim":1}`, w, w)},
		"_softmax.default":       {one(`{"dim":-1}`, w, w)},
		"upsample_nearest2d.vec": {image4(``, []int{2, 3, 8, 18}, img...)},
		"view.default":           {one(``, []int{2, 12}, w)},
		"permute.default":        {one(`{"dims":[2,0,1]}`, []int{4, 2, 3}, w)},
		"transpose.int":          {one(`{"dim0":-1,"dim1":0}`, []int{4, 3, 2}, w)},
		"t.default":              {one(``, []int{3, 2}, v)},
		"unsqueeze.default":      {one(`{"dim":-1}`, []int{2, 3, 1}, v), one(`{"dim":1}`, []int{2, 1, 3}, v)},
		"squeeze.dims":           {one(`{"dim":[1]}`, v, []int{2, 1, 3})},
		"squeeze.dim":            {one(`{"dim":0}`, v, []int{1, 2, 3})},
		"expand.default":         {one(``, []int{2, 2, 3}, []int{2, 1, 3})},
		"repeat.default":         {one(`{"repeats":[2,1,3]}`, []int{2, 2, 9}, v)},
		"flip.default":           {one(`{"dims":[0,-1]}`, w, w)},
		"cat.default": {{
			tensors: []string{"a", "b"}, sizes: [][]int{v, {2, 4}},
			args: `{"tensors":["%a","%b"],"dim":1}`, shape: []int{2, 7},
		}},
		"stack.default": {{
			tensors: []string{"a", "b"}, sizes: [][]int{v, v},
			args: `{"tensors":["%a","%b"],"dim":1}`, shape: []int{2, 2, 3},
		}},
		"constant_pad_nd.default": {one(`{"pad":[1,2,-1,0]}`, []int{2, 2, 7}, w)},
		"pad.default":             {one(`{"pad":[0,1,0,1],"mode":"constant"}`, []int{2, 3, 5, 7}, img)},
		"pixel_shuffle.default":   {one(`{"upscale_factor":2}`, []int{2, 1, 4, 6}, []int{2, 4, 2, 3})},
		"pixel_unshuffle.default": {one(`{"downscale_factor":2}`, []int{2, 12, 2, 3}, img)},
		"slice.Tensor": {
			one(`{"dim":1,"start":-2,"end":9223372036854775807}`, []int{2, 2, 4}, w),
			one(`{"dim":2,"step":2}`, []int{2, 3, 2}, w),
		},
		"select.int": {one(`{"dim":1,"index":-1}`, []int{2, 4}, w)},
		"embedding.default": {{
			tensors: []string{"weight"}, sizes: [][]int{{5, 3}},
			args: `{"indices":"%index"}`, shape: []int{4, 3},
		}},
		"index_select.default": {one(`{"dim":1,"index":"%index"}`, []int{2, 4, 3}, []int{2, 5, 3})},
		"index.Tensor": {
			one(`{"indices":[null,"%index"]}`, []int{2, 4, 3}, []int{2, 5, 3}),
			one(`{"indices":["%index"]}`, []int{4, 2}, []int{5, 2}),
		},
		"mean.dim":                 {one(`{"dim":[-1],"keepdim":true}`, []int{2, 3, 1}, w)},
		"sum.dim_IntList":          {one(`{"dim":[0,2]}`, []int{3}, w)},
		"mean.default":             {one(``, []int{}, w)},
		"sum.default":              {one(``, []int{}, w)},
		"amax.default":             {one(`{"dim":[1]}`, []int{2, 4}, w)},
		"amin.default":             {one(`{"dim":[1]}`, []int{2, 4}, w)},
		"var.correction":           {one(`{"dim":[1,2],"correction":1}`, []int{2}, w)},
		"var_mean.correction":      {one(`{"dim":[2],"correction":0}`, nil, w)},
		"split.Tensor":             {one(`{"split_size":2,"dim":-1}`, nil, w)},
		"split_with_sizes.default": {one(`{"split_sizes":[1,3],"dim":-1}`, nil, w)},
		"chunk.default":            {one(`{"chunks":2,"dim":-1}`, nil, w)},
		"unbind.int":               {one(`{"dim":1}`, nil, w)},
		"einsum.default": {
			{
				tensors: []string{"a", "b"}, sizes: [][]int{{2, 3, 4}, {4, 5}},
				args: `{"equation":"bij,jk->bik","tensors":["%a","%b"]}`, shape: []int{2, 3, 5},
			},
			{
				tensors: []string{"a"}, sizes: [][]int{{2, 3, 4}}, args: `{"equation":"abc->cab","tensors":["%a"]}`,
				shape: []int{4, 2, 3},
			},
		},
		"scaled_dot_product_attention.default": {
			{
				tensors: []string{"query", "key", "value"}, sizes: [][]int{{2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}},
				shape: []int{2, 2, 3, 4},
			},
			{
				tensors: []string{"query", "key", "value", "attn_mask"},
				sizes:   [][]int{{2, 3, 4}, {2, 5, 4}, {2, 5, 2}, {3, 5}},
				args:    `{"scale":0.3}`, shape: []int{2, 3, 2},
			},
		},
		"avg_pool2d.default":         {one(`{"kernel_size":[2,3],"stride":[2,3]}`, []int{2, 3, 2, 2}, img)},
		"linalg_vector_norm.default": {one(`{"ord":2,"dim":[1]}`, []int{2, 4}, w)},
		"dropout.default": {{
			tensors: []string{"input"}, sizes: [][]int{v},
			args: `{"p":0.5,"train":false}`, shape: v,
		}},
		"elu.default": {one(``, v, v)}, "leaky_relu.default": {one(`{"negative_slope":0.2}`, v, v)},
		"rsub.Scalar": {one(`{"other":2,"alpha":3}`, v, v)}, "add.Scalar": {one(`{"other":2}`, v, v)},
		"sub.Scalar": {one(`{"other":2}`, v, v)},
		"mul.Scalar": {one(`{"other":2}`, v, v)}, "div.Scalar": {one(`{"other":3}`, v, v)},
		"adaptive_avg_pool2d.default": {one(`{"output_size":[2,3]}`, []int{2, 3, 2, 3}, img)},
		"where.ScalarSelf": {{
			tensors: []string{"other"}, sizes: [][]int{w},
			args: `{"condition":"%mask","self":2}`, shape: w,
		}},
		"where.ScalarOther": {{
			tensors: []string{"self"}, sizes: [][]int{w},
			args: `{"condition":"%mask","other":2}`, shape: w,
		}},
	}
	for _, op := range strings.Fields("exp sin cos tanh sigmoid erf expm1 neg silu softplus mish square _to_copy clone " +
		"alias contiguous relu abs") {
		cases[op+".default"] = []ruleCase{one(``, v, v)}
	}
	for _, op := range strings.Fields("log sqrt rsqrt reciprocal log1p") {
		cases[op+".default"] = []ruleCase{positiveOf(one(``, v, v))}
	}
	for same, as := range map[string]string{
		"_unsafe_view.default": "view.default", "reshape.default": "view.default",
		"flatten.using_ints": "view.default",
		"unflatten.int":      "view.default", "_adaptive_avg_pool2d.default": "adaptive_avg_pool2d.default",
		"to.dtype":                "_to_copy.default",
		"lift_fresh_copy.default": "clone.default",
	} {
		cases[same] = cases[as]
	}
	cases["upsample_nearest2d.default"] = []ruleCase{one(``, []int{2, 3, 4, 12}, img)}
	return cases
}

func normal(args string, size []int, channels int) ruleCase {
	return ruleCase{
		tensors: []string{"input", "weight", "bias"}, sizes: [][]int{size, {channels}, {channels}},
		args: args, shape: size,
	}
}

// constantRules have no derivative, or none but zero.
var constantRules = strings.Fields(`input param add_ratios getitem detach.default sign.default floor.default
	eq.Scalar eq.Tensor ne.Scalar ne.Tensor lt.Scalar lt.Tensor le.Scalar le.Tensor gt.Scalar gt.Tensor ge.Scalar ge.Tensor
	logical_not.default logical_and.default logical_or.default bitwise_not.default arange.start_step arange.default
	arange.start full.default full_like.default zeros.default ones.default zeros_like.default ones_like.default
	new_zeros.default new_ones.default scalar_tensor.default`)

// TestRulesDifferentiate holds three derivatives of every rule to central differences.
func TestRulesDifferentiate(t *testing.T) {
	cases := differentiable()
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
		return v.plain()
	}
	sum := graph.MulScalar(graph.ReduceAllSum(graph.Sin(v.parts[0].plain())), 0.3)
	for i, p := range v.parts[1:] {
		sum = graph.Add(sum, graph.MulScalar(graph.ReduceAllSum(graph.Sin(p.plain())), 0.3/float64(i+2)))
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
		b.values = append(b.values, plain(n))
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
			return []*graph.Node{graph.ConvertDType(v.plain(), dtypes.Float64)}
		}, devicetest.Input{Flat: []int64{0, 1, 2, 3}, Dims: []int{4}})[0]
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s is %v; want %v", c.op, c.args, got, c.want)
		}
	}
}

// TestValueKeepsPlace: permutations, and reshapes of runs that lie together, move no data, and whatever is moved says
// the same as when everything is kept in PyTorch's order.
func TestValueKeepsPlace(t *testing.T) {
	image := value{at: []int{0, 3, 1, 2}}
	dev := devicetest.PureGo(t)
	_, err := dev.Cost("place", func(g *graph.Graph) []*graph.Node {
		image.n = graph.IotaFull(g, shapes.Make(dtypes.Float64, 2, 4, 5, 3)) // [B, H, W, C] of [2, 3, 4, 5]
		tokens := permuted(image.reshape([]int{2, 3, 20}), []int{0, 2, 1})
		if !slices.Equal(tokens.dims(), []int{2, 20, 3}) || !slices.Equal(tokens.at, []int{0, 1, 2}) {
			t.Errorf("tokens of an image have shape %v, stored %v", tokens.dims(), tokens.at)
		}
		back := permuted(tokens, []int{0, 2, 1}).reshape([]int{2, 3, 4, 5})
		if !slices.Equal(back.at, image.at) {
			t.Errorf("the image of tokens is stored %v; want channels last", back.at)
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
