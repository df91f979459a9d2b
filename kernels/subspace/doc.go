// Package subspace applies the projectors of a basis in a graph: what they take as parameters,
// sums over subspaces, parts of images, and one coefficient per sample and subspace.
//
// It imports kernels/device and schedule/basis. Begin with Projector, which a model has one of,
// and Subspaces, which a program has one of.
package subspace
