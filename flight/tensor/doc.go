// Package tensor implements Arrow's canonical extension type arrow.fixed_shape_tensor: every row of a column is an
// array of one shape, stored row-major in a fixed_size_list. arrow-go does not have the type; pyarrow does.
//
// Tensors are never permuted. pyarrow reads and writes 3-cycle permutations incorrectly, so a schema with a permutation
// other than the identity is refused.
//
// The package registers the type with arrow-go, so that IPC readers find it. Begin reading with Type.
package tensor
