package shim

import "bytes"

// TF32Module is the name of a module whose products may round their factors to
// TensorFloat-32.
const TF32Module = "tf32"

// withProducts returns a program in StableHLO's text with the precision of its products
// written out, which go-xla leaves at DEFAULT throughout. To XLA for GPUs DEFAULT and HIGH
// mean that float32 may be multiplied as TF32, HIGHEST that it may not; products of
// bfloat16 are the same at each.
func withProducts(code []byte) []byte {
	if bytes.HasPrefix(code, []byte("module @"+TF32Module+" ")) {
		return code
	}
	return bytes.ReplaceAll(code, []byte("#stablehlo<precision DEFAULT>"), []byte("#stablehlo<precision HIGHEST>"))
}
