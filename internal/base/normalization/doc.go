// Package normalization maps data in their own units, such as images of another range, latents and physical fields, to
// the values that a network sees, and back. Data sets store their map, and models the map that they were trained with.
package normalization
