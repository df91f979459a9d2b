// Package unet holds the networks of EDM (Karras et al., "Elucidating the Design Space of Diffusion-Based Generative
// Models", arXiv 2206.00364): SongUNet in the forms DDPM++ and NCSN++, and DhariwalUNet (ADM).
//
// A [Config] holds EDM's own keyword arguments under EDM's own names, and a [Net] made from it has EDM's parameters:
// the names, shapes, order and initial distributions of its state dict, so that checkpoints go both ways unchanged.
// [Net.Apply] appends the raw network F to a computation graph; the wrapping around it (preconditioning) is package
// kernels' business.
//
// One thing is added to EDM: with ratio_embedding = J−1 the network sees how the noise levels of J subspaces differ,
// through linear maps of the embedded log-ratios that start at zero. A checkpoint without them loads with zeros and
// computes what it always did.
//
// A Net holds no values and is immutable. Begin reading at [New]; the two families are built in layout.go from the
// block in block.go.
package unet
