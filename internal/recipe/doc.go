// Package recipe reads the recipes in configs/: the whole way from a data set and a
// network to a table, one file for each method.
//
// A [Recipe] is what a file says, over its base, checked. Its stages ([Recipe.Stages])
// are command lines that anyone can type; the command line's `recipe` prints them or
// runs them. A recipe's twin ([Twin]) is the same on images that it generates itself
// ([Generate]) in the format of the real ones, small enough for a test.
//
// The package may import train, kernels/unet and the standard library. It knows no
// engine and no device. Begin with recipe.go, then stage.go.
package recipe
