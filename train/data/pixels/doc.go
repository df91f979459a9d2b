// Package pixels turns bytes into floats and back, and images from one layout into
// another. Whatever reads, stores, sends or draws images does it here, so that equal
// bytes are equal floats everywhere. The Python client has the same functions
// (anisoflight/images.py); testdata/pixels.json holds both to the same values.
//
// The package imports the standard library only. Begin with bytes.go.
package pixels
