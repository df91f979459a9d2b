// Package resample crops and resizes images of bytes as EDM's dataset tool does with
// Pillow: a separable filter, applied along rows and then along columns, with bytes in
// between and coefficients rounded to 22 binary places. Its results are Pillow's, bit for
// bit (testdata), where Pillow takes rows first: always until version 12; later versions take columns
// first where that costs less, and may then differ by one level.
//
// An image is row-major [H, W, C]. The package imports nothing of the project. Begin with
// resize.go; transform.go has the crops of EDM's tool.
package resample
