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

// withDonors returns a program, as StableHLO's text, with the parameters of [DonorPrefix] marked as donors. PJRT lets
// outputs lie in the memory of donated arguments only if the program was compiled for it, and go-xla has no way to ask
// for that. XLA then pairs donors and outputs of the same size.
func withDonors(code []byte) []byte {
	head, rest, found := bytes.Cut(code, []byte("->"))
	if !found || !bytes.Contains(head, []byte("%"+DonorPrefix)) {
		return code
	}
	head = donor.ReplaceAll(head, []byte("$0 {jax.buffer_donor = true}"))
	return bytes.Join([][]byte{head, rest}, []byte("->"))
}

// withExactProducts returns a program, as StableHLO's text, with the precision of its products written out. go-xla
// leaves it at DEFAULT. For XLA on GPUs DEFAULT and HIGH mean that float32 may be multiplied as TF32, HIGHEST that it
// may not. Products of bfloat16 are the same with each.
func withExactProducts(code []byte) []byte {
	if bytes.HasPrefix(code, []byte("module @"+TF32Module+" ")) {
		return code
	}
	return bytes.ReplaceAll(code, []byte("#stablehlo<precision DEFAULT>"), []byte("#stablehlo<precision HIGHEST>"))
}
