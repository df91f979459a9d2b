// Package mixture is the laboratory's ground truth: a Gaussian mixture whose flow is known in closed form.
//
// For p_0 = Σ_i π_i N(μ_i, Σ_i) the noisy density is p_t = Σ_i π_i N(μ_i, S_i), S_i = Σ_i + M with M = Σ_j g_j P_j, and
//
//	flow(x) = M^{1/2} ∇ log p_t(x) = M^{1/2} Σ_i ρ_i(x) S_i^{-1}(μ_i − x),
//	ρ_i(x) ∝ π_i |S_i|^{-1/2} exp( −½ (x−μ_i)ᵀ S_i^{-1} (x−μ_i) ).
//
// The optimal network is at hand, so estimators can be compared with finite differences of the loss, and solvers with
// the exact solution. A [Net] is what a model folder holds, with classes. Its covariances must not mix the subspaces of
// the noise; its images may have any size.
//
// A [Net] is immutable. Begin with net.go and principal.go; law.go makes a mixture of images.
package mixture
