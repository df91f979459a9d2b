// Package basis splits the image space into orthogonal subspaces.
//
// A Basis stands for projectors P_1 … P_J with Σ_j P_j = I that act on the H×W plane
// of every colour channel alike. P_1 is the coarse part: low frequencies or leading
// components; P_J is whatever is left. With R_1 ⊂ R_2 ⊂ … the nested spans,
//
//	P_1 = R_1,  P_j = R_j − R_{j−1},  P_J = I − R_{J−1}.
//
// Kinds: none (J = 1, P_1 = I), dct (separable low-pass cuts of the orthonormal
// DCT-II), haar (the coarse part of the Haar wavelet transform, separable too), dense
// (orthonormal rows, shared, per class or per cluster of classes). Dense rows are a
// user's own, or the principal components of images: Moments gathers the covariance
// of any number of them in one pass, and Components are its leading eigenvectors.
//
// The package imports the standard library and gonum and computes in float64; Split is
// the reference that device programs are compared with. Bases are immutable.
//
// The bases that have names are in a registry, which the rest of the program asks for
// names, how a basis is made, and what it takes: see [Definition]. A new one is a file
// here, a line in registry.go, a line of documentation and a test.
//
// Begin with basis.go and registry.go; then pca.go.
package basis
