// Package blocks keeps large blocks of memory that a library frees, and gives them to it again.
//
// XLA for CPU allocates what a program needs for itself, and every output, anew in each run: hundreds of MiB for a
// training step. malloc maps such blocks and unmaps them when they are freed, so that each run has the kernel clear and
// map every page again, at its first touch: a quarter of the time of a gradient (docs/benchmarks/model.md has the
// figures). [Serve] puts functions of this package in the place of those that one library, the plugin, allocates and
// frees by. Blocks from 1 MiB on are mapped here; a freed one is kept for the next request of its size or up to a fifth
// less.
//
// A thread looks after what is kept. Two seconds after a block was freed it tells the kernel that it may take its pages
// (MADV_FREE), so that they count as available memory. It does not do so at once, since that costs a step 28 ms for
// 289 MiB, a tenth of its time. After a minute without use the block is unmapped.
//
// The package imports nothing of this module. In a build without cgo, or for another system than Linux, it is empty.
package blocks
