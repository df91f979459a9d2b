// Package data holds the images that runs train on.
//
// A Dataset is immutable: images of one size in the type and layout they were
// uploaded in, and a class for each or none at all. One that is loaded lies in its file,
// mapped into memory, and a Writer stores one as its images come: neither holds them. An Order says which image
// stands at which position of a run, as a function of a seed alone, so that the
// position is all a resumed run has to know. A stored data set is a folder,
//
//	images.npy     [n, H, W, C] or [n, C, H, W], uint8 or float32
//	labels.npy     [n] int32, only where there are labels
//	dataset.json   {"format": "anisoflight-dataset", "version": 1, "layout": "HWC", "hash": …}
//	               version 2 with "normalization": {"mean": […], "scale": […]} of floats in units of their own
//
// which appears whole or not at all, and whose files are never changed. Other formats
// are read by the Python package (anisoflight.data), which uploads what it reads.
//
// The package may import internal/base/normalization, kernels/latent, train/checkpoint/atomicdir
// and the standard library. Begin with dataset.go; npy.go reads and writes NumPy's formats.
package data
