// Package blocks keeps large blocks of memory that a library frees, and gives them to it again.
//
// XLA for CPU allocates what a program needs for itself, and every output, anew in each run: hundreds of MiB for a
// training step. malloc maps such blocks and unmaps them when they are freed, so that each run has the kernel clear and
// map every page again, at its first touch: a quarter of the time of a gradient (docs/benchmarks/model.md has the
// figures). [Serve] puts functions of this package in the place of those that one library, the plugin, allocates and
// frees by. Blocks from 1 MiB on are mapped here; a freed one is kept for the next request of its size or up to a fifth
// less.
//
// A kept block costs nobody anything: the kernel is told that it may take its pages (MADV_FREE), so it counts as
// available memory, and after a minute without use it is unmapped as soon as the library allocates or frees again.
//
// The package imports nothing of this module. In a build without cgo, or for another system than Linux, it is empty.
package blocks
