// Package start draws the states at which sampling starts from the data's own normal law
// instead of pure noise.
//
// Data of mean μ and covariance Σ under noise of covariance M = Σ_j g_j P_j have, to
// second order, the law N(μ, Σ + M). So a sampler may start at
//
//	x_T = μ + (Σ + M)^½ ξ        instead of        x_T = M^½ ξ,
//
// at no evaluation and at any noise level: exact where the data are normal. The root is
// the symmetric one, so that x_T → M^½ ξ from the same ξ as M grows. The standard start
// errs at the end by what the noise has not drowned, (Σ^{1/2}(Σ+M)^{-1/2}) μ and a factor
// √(M/(Σ+M)) of the spread in each direction; this one by what is not normal in the data
// at noise M.
//
// A Law is μ and Σ of one class or of all images. Σ is kept in one of two forms: variances
// along the frequencies of the DCT, with axes of the channels at each, or along some
// orthonormal vectors with one variance for the rest. A Start has one law for all images
// and, where it is per class, one for each class.
//
// The package imports schedule/basis, internal/base/normalization, gonum's matrices and the
// standard library: no device, no tensors. Everything is deterministic and float64. Begin with law.go; measure.go
// estimates, root.go draws.
package start
