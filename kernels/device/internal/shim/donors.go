package shim

import (
	"bytes"
	"regexp"
)

// DonorPrefix begins the names of parameters whose memory a program's outputs may take
// over.
const DonorPrefix = "donated_"

var donor = regexp.MustCompile(`%` + DonorPrefix + `\w+: tensor<[^>]*>`)

// withDonors returns a program in StableHLO's text with those parameters marked as donors.
// PJRT lets outputs lie in the memory of donated arguments only where the program was
// compiled for it, and go-xla has no way to say so; XLA then pairs donors and outputs of
// one size.
func withDonors(code []byte) []byte {
	head, rest, found := bytes.Cut(code, []byte("->"))
	if !found || !bytes.Contains(head, []byte("%"+DonorPrefix)) {
		return code
	}
	head = donor.ReplaceAll(head, []byte("$0 {jax.buffer_donor = true}"))
	return bytes.Join([][]byte{head, rest}, []byte("->"))
}
