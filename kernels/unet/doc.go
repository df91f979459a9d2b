// Package unet holds the networks of EDM (Karras et al., "Elucidating the
// Design Space of Diffusion-Based Generative Models", arXiv 2206.00364).
package unet
