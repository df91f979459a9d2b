package shim

import (
	"strings"
	"testing"
)

func TestDonorsAreMarked(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{
			"one of two", "func.func @main(%donated_m: tensor<4xf32>, %b: tensor<f32>) -> tensor<4xf32> {\n%0 = " +
				"add(%donated_m, %b) : (tensor<4xf32>) -> x",
			"func.func @main(%donated_m: tensor<4xf32> {jax.buffer_donor = true}, %b: tensor<f32>) -> tensor<4xf32> {\n%0 = " +
				"add(%donated_m, %b) : (tensor<4xf32>) -> x",
		},
		{
			"none", "func.func @main(%m: tensor<4xf32>) -> tensor<4xf32> {",
			"func.func @main(%m: tensor<4xf32>) -> tensor<4xf32> {",
		},
		{"no function", "%donated_m: tensor<4xf32>", "%donated_m: tensor<4xf32>"},
	} {
		if got := string(withDonors([]byte(c.code))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestProductsAreExactUnlessAllowed(t *testing.T) {
	body := ` {
  func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = "stablehlo.dot_general"(%a, %a) {precision_config = [` +
		"#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}\n"
	exact := string(withExactProducts([]byte("module @main" + body)))
	if n := strings.Count(exact, "#stablehlo<precision HIGHEST>"); n != 2 || strings.Contains(exact, "DEFAULT") {
		t.Errorf("got %s", exact)
	}
	allowed := "module @" + TF32Module + body
	if got := string(withExactProducts([]byte(allowed))); got != allowed {
		t.Errorf("got %s", got)
	}
}
