// Package source reads images from the formats that data sets come in, and converts them
// to stored data sets and EDM zips.
//
//	folder of PNG, JPEG, WebP      class by dataset.json, else by sub-folder
//	zip of such images             StyleGAN's and EDM's, with dataset.json
//	.npz                           arrays images and labels, or arr_0
//	CIFAR-10                       python or binary batches: a folder, a tar, one batch
//	Parquet, Arrow IPC             a tensor column, or encoded images
//	a stored data set              of package data
//
// Images come one after the other in an order that the source alone determines, and are
// decoded on all cores; none but those under way are held in memory. Nothing that lies in a
// file is executed or names a place to write to, and sizes that a file claims are checked
// before they are allocated. What is wrong with a file is a *[data.Error] that says which
// file and which entry.
//
// The package may import train/data and its sub-packages. Begin with source.go and
// convert.go; there is one file per format.
package source
