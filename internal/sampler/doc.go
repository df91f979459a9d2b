// Package sampler takes latents along plans to samples: in buckets that fit the device, from noise or from the law of
// the data, with the evaluations of two networks mixed if a guide asks for that, and by coefficients of subspaces or
// of coordinates.
//
// Begin with Sampler, which follows plans on the server's devices, and with Ensemble, the seam through which a search
// uses any network.
package sampler
