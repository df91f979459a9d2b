// Package normalization maps the values of data, in their own units, to those that a network sees, and back: images in
// another range, latents, physical fields. Data sets store the map, and models remember the one that they were trained
// with.
package normalization
