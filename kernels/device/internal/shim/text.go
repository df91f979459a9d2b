package shim

import (
	"bytes"
	"regexp"
)

// DonorPrefix begins the names of parameters whose memory a program's outputs may take over.
const DonorPrefix = "donated_"

// TF32Module is the name of a module whose products may round their factors to TensorFloat-32.
const TF32Module = "tf32"

var donor = regexp.MustCompile(`%` + DonorPrefix + `\w+: tensor<[^>]*>`)

// withDonors marks the parameters of [DonorPrefix] as donors in the StableHLO text of a program. PJRT lets outputs use
// the memory of donated arguments only if the program was compiled for it, and go-xla cannot ask for that. XLA then
// pairs donors and outputs of the same size.
func withDonors(code []byte) []byte {
	head, rest, found := bytes.Cut(code, []byte("->"))
	if !found || !bytes.Contains(head, []byte("%"+DonorPrefix)) {
		return code
	}
	head = donor.ReplaceAll(head, []byte("$0 {jax.buffer_donor = true}"))
	return bytes.Join([][]byte{head, rest}, []byte("->"))
}

// withExactProducts sets the precision of products in the StableHLO text of a program, which go-xla leaves at DEFAULT.
// On GPUs, DEFAULT and HIGH let XLA multiply float32 as TF32, HIGHEST does not. Products of bfloat16 are not affected.
func withExactProducts(code []byte) []byte {
	if bytes.HasPrefix(code, []byte("module @"+TF32Module+" ")) {
		return code
	}
	return bytes.ReplaceAll(code, []byte("#stablehlo<precision DEFAULT>"), []byte("#stablehlo<precision HIGHEST>"))
}
