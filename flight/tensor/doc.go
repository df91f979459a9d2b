// Package tensor is Arrow's canonical extension type arrow.fixed_shape_tensor: a column whose every row is an array of
// one shape, stored row-major in a fixed_size_list. arrow-go has none; pyarrow reads and writes the same.
//
// A tensor here is never permuted. pyarrow reads and writes 3-cycle permutations wrongly, so a permutation other than
// the identity, which means nothing, is refused when a schema is read; what is written has none.
//
// Importing the package registers the type with arrow-go, so that IPC readers find it. Begin reading with Type.
package tensor
