package shim

import (
	"strings"
	"testing"
)

func TestProductsAreExactUnlessAllowed(t *testing.T) {
	body := ` {
  func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = "stablehlo.dot_general"(%a, %a) {precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
`
	exact := string(withProducts([]byte("module @main" + body)))
	if n := strings.Count(exact, "#stablehlo<precision HIGHEST>"); n != 2 || strings.Contains(exact, "DEFAULT") {
		t.Errorf("got %s", exact)
	}
	allowed := "module @" + TF32Module + body
	if got := string(withProducts([]byte(allowed))); got != allowed {
		t.Errorf("got %s", got)
	}
}
