package rewrite

import (
	"strings"
	"testing"
)

// A sum over pixels, and the repetition of a group's mean, as go-xla writes them.
const normText = `module @norm {
  func.func @main(%x: tensor<8x32x32x64xf32>, %m: tensor<8x16x1xf32>) -> (tensor<8x64xf32>, tensor<8x1x1x64xf32>) {
    %0 = "stablehlo.multiply"(%x, %x) : (tensor<8x32x32x64xf32>, tensor<8x32x32x64xf32>) -> tensor<8x32x32x64xf32>
    %1 = "stablehlo.constant"() { value = dense<0.0> : tensor<f32> } : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%0, %1) ({
      ^reductionFn(%lhs: tensor<f32>, %rhs: tensor<f32>) :
          %3 = "stablehlo.add"(%lhs, %rhs) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) { dimensions = array<i64: 1, 2> } : (tensor<8x32x32x64xf32>, tensor<f32>) -> tensor<8x64xf32>
    %4 = "stablehlo.broadcast_in_dim"(%m) { broadcast_dimensions = array<i64: 0, 1, 2> } : (tensor<8x16x1xf32>) -> tensor<8x16x4xf32>
    %5 = "stablehlo.reshape"(%4) : (tensor<8x16x4xf32>) -> tensor<8x1x1x64xf32>
    "stablehlo.return"(%2, %5) : (tensor<8x64xf32>, tensor<8x1x1x64xf32>) -> ()
  }
}
`

// Programs without a place for a rule come back unchanged.
func TestOthersAreLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		rule           func([]byte) ([]byte, int)
	}{
		{"the terms have another use", `"stablehlo.return"(%2, `, `"stablehlo.return"(%0, `, sums},
		{"they are not computed", `(%0, %1)`, `(%x, %1)`, sums},
		{"they come from a product", `stablehlo.multiply`, `stablehlo.dot_general`, sums},
		{"the sum is over channels", `array<i64: 1, 2> }`, `array<i64: 3> }`, sums},
		{"it is a maximum", `%3 = "stablehlo.add"`, `%3 = "stablehlo.maximum"`, sums},
		{"it is of integers", `f32`, `i32`, sums},
		{"its terms are few", `8x32x32x64xf32`, `8x4x4x64xf32`, sums},
		{"the axis is odd", `8x32x32x64xf32`, `8x31x32x64xf32`, sums},
		{"nothing is repeated", `8x16x4xf32`, `8x16x1xf32`, repeats},
		{"there is one group", `8x16x`, `8x1x`, repeats},
		{"the groups are repeated", `(tensor<8x16x1xf32>)`, `(tensor<8x1x1xf32>)`, repeats},
		{"the matrix would be large", `8x16x4xf32`, `8x16x4096xf32`, repeats},
		{"the axes are other ones", `array<i64: 0, 1, 2>`, `array<i64: 0, 2, 1>`, repeats},
		{"they are of another type", `f32`, `bf16`, repeats},
	} {
		code := strings.ReplaceAll(normText, c.old, c.new)
		if code == normText {
			t.Fatalf("%s: nothing was changed", c.name)
		}
		if got, n := c.rule([]byte(code)); n != 0 || string(got) != code {
			t.Errorf("%s, and yet it is rewritten:\n%s", c.name, got)
		}
	}
}

// A convolution and its gradient by the kernel, as go-xla writes them.
const convolutionText = `module @convolution {
  func.func @main(%x: tensor<2x8x8x128xf32>, %w: tensor<3x3x128x192xf32>, %g: tensor<2x8x8x192xf32>) -> (tensor<2x8x8x192xf32>, tensor<3x3x128x192xf32>) {
    %0 = "stablehlo.convolution"(%x, %w) {
      batch_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
      feature_group_count = 1 : i64,
      lhs_dilation = array<i64: 1, 1>,
      padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>],
      rhs_dilation = array<i64: 1, 1>,
      window_reversal = array<i1: false, false>,
      window_strides = array<i64: 1, 1>
    } : (tensor<2x8x8x128xf32>, tensor<3x3x128x192xf32>) -> tensor<2x8x8x192xf32>
    %1 = "stablehlo.convolution"(%x, %g) {
      batch_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]>,
      feature_group_count = 1 : i64,
      lhs_dilation = array<i64: 1, 1>,
      padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>],
      rhs_dilation = array<i64: 1, 1>,
      window_reversal = array<i1: false, false>,
      window_strides = array<i64: 1, 1>
    } : (tensor<2x8x8x128xf32>, tensor<2x8x8x192xf32>) -> tensor<3x3x128x192xf32>
    "stablehlo.return"(%0, %1) : (tensor<2x8x8x192xf32>, tensor<3x3x128x192xf32>) -> ()
  }
}
`

// Which convolutions are written by Winograd's method; what they compute is tested on the device.
func TestConvolutionsByWinogradsMethod(t *testing.T) {
	type change = []string
	for name, test := range map[string]struct {
		changes          []change
		images, gradient int
	}{
		"as they are":              {nil, 1, 1},
		"by the image":             {[]change{{`[0, 1, i, o]`, `[0, 1, o, i]`}, {`3x3x128x192`, `3x3x192x128`}}, 1, 1},
		"the kernel is reversed":   {[]change{{`false, false`, `true, true`}}, 1, 0},
		"in one direction":         {[]change{{`false, false`, `true, false`}}, 0, 0},
		"the batch is one":         {[]change{{`2x8x8`, `1x8x8`}}, 1, 1},
		"half as many channels":    {[]change{{`x128`, `x64`}}, 1, 0},
		"few channels":             {[]change{{`x128`, `x32`}}, 0, 0},
		"few outputs":              {[]change{{`x192`, `x3`}}, 0, 0},
		"a side is odd":            {[]change{{`2x8x8`, `2x9x8`}}, 0, 0},
		"the image is small":       {[]change{{`2x8x8`, `2x4x4`}}, 0, 0},
		"the kernel is larger":     {[]change{{`3x3x`, `5x5x`}}, 0, 0},
		"every other pixel":        {[]change{{`window_strides = array<i64: 1, 1>`, `window_strides = array<i64: 2, 2>`}}, 0, 0},
		"pixels apart":             {[]change{{`rhs_dilation = array<i64: 1, 1>`, `rhs_dilation = array<i64: 2, 2>`}}, 0, 0},
		"no border":                {[]change{{`[1, 1], [1, 1]`, `[0, 0], [0, 0]`}}, 0, 0},
		"channels in groups":       {[]change{{`feature_group_count = 1`, `feature_group_count = 2`}}, 0, 0},
		"numbers of another width": {[]change{{`xf32`, `xbf16`}}, 0, 0},
	} {
		code := convolutionText
		for _, c := range test.changes {
			if !strings.Contains(code, c[0]) {
				t.Fatalf("%s: nothing to change", name)
			}
			code = strings.ReplaceAll(code, c[0], c[1])
		}
		got, images := winograd([]byte(code))
		got, gradients := winogradGradients(got)
		if images != test.images || gradients != test.gradient {
			t.Errorf("%s: %d and %d are rewritten, want %d and %d", name, images, gradients, test.images, test.gradient)
		}
		if left := strings.Count(string(got), "stablehlo.convolution"); left != 2-images-gradients {
			t.Errorf("%s: %d convolutions are left of two", name, left)
		}
	}
}

// Whether an image's sums are taken by parts does not depend on the number of images.
func TestBatchDoesNotDecide(t *testing.T) {
	for _, batch := range []string{"1", "8", "64"} {
		code := strings.ReplaceAll(normText, "<8x", "<"+batch+"x")
		if _, n := sums([]byte(code)); n != 1 {
			t.Errorf("a batch of %s is not summed by parts", batch)
		}
		if _, n := sums([]byte(strings.ReplaceAll(code, "x32x32x64", "x8x8x64"))); n != 0 {
			t.Errorf("a batch of %s is summed by parts though its images are small", batch)
		}
	}
}

// ForCPU counts every place that a rule has changed. That they compute the same is tested in selfcheck.
func TestPlacesAreCounted(t *testing.T) {
	code, n := ForCPU([]byte(normText))
	for text, want := range map[string]int{
		`"stablehlo.slice"(%0) {`: 4, `"stablehlo.reduce"(%parts.1.3, %1)`: 1, `"stablehlo.dot_general"(%repeat.1.values, `: 1,
		`broadcast_in_dim`: 0, `"stablehlo.return"(%2, %5)`: 1,
	} {
		if got := strings.Count(string(code), text); got != want {
			t.Errorf("%s stands there %d times, want %d", text, got, want)
		}
	}
	if n != 2 {
		t.Errorf("%d places, want a sum and a repetition", n)
	}
}
