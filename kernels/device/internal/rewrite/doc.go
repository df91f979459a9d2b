// Package rewrite gives programs the form in which XLA for CPU is fast.
//
// A program is StableHLO's text as go-xla writes it, before the plugin compiles it: all derivatives are taken by then,
// so that a sum is one operation with a simple derivative in the graph, and may be written in another way here,
// wherever it came from. Each rule is a file of its own, named after what it finds; bench/docs/model.md has the
// times that speak for it. A program without what the rules find comes back as it is. Values that the rules add have
// dots in their names, which go-xla's have not.
//
// XLA for GPUs forms its loops in other ways and is given programs as they are. The package imports nothing of this
// module.
package rewrite

// ForCPU returns a program in the form for XLA's CPU compiler, and how many places of it were changed. Its outputs are
// the same up to rounding.
func ForCPU(code []byte) (out []byte, places int) {
	for _, rule := range []func([]byte) ([]byte, int){winograd, winogradGradients, splitGradients, sums, repeats} {
		var n int
		code, n = rule(code)
		places += n
	}
	return code, places
}
