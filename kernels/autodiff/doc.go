// Package autodiff repairs the derivative rules of the graph library, so that
// every operation this module builds networks and losses from can be
// differentiated by reverse mode any number of times.
//
// The schedule's gradient needs second derivatives: h = ∇ₓ⟨Jᵀw, z⟩ is a reverse
// pass over a reverse pass. The library's own rules break there in two ways:
// a convolution's derivative is a dilated convolution, which has no derivative
// of its own, and the derivative of a matrix product multiplies out the whole
// outer product before it sums. The rules here are closed: the derivative of a
// convolution is written with convolutions, of a product with products, of a
// slice with concatenations, so the rule set can be applied to its own output.
//
// May import: the graph library and kernels/internal/nodes (the tests' helper
// gradcheck opens a device). Invariant: after
// Install, the vector-Jacobian product of a listed operation contains listed
// operations only. Begin reading at Install; each rule is one file, named after
// the operation.
//
// Operations outside the list (pooling, grouped convolution, cumulative sums,
// FFT, padding, custom gradients) keep the library's rule, which may be valid
// to first order only. Do not use them in anything that is differentiated twice.
package autodiff
