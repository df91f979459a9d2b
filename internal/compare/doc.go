// Package compare measures samplers side by side: every solver on every grid of every
// schedule at every number of evaluations, from the same latents.
//
// Two figures judge a sampler. The ODE error is the distance of its samples to the
// converged solution of the same path from the same latents: nearly free of noise,
// but of no use between paths that are different maps. The Fréchet distance is that
// of its samples to real images, seen through the leading principal components of
// their pixels: comparable between all rows, with the noise of sampling in it. Both are
// defined as in the Python package's compare, to which a test holds them.
//
// The package draws through a function that its caller gives; it knows neither the
// engine nor the device. Begin with compare.go, then features.go and frechet.go.
package compare
