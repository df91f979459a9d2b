package shim

import "testing"

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
