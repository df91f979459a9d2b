// Package safetensors reads and writes the safetensors file format.
//
// A file is
//
//	8 bytes      n, the length of the header, little-endian uint64
//	n bytes      JSON object: name → {"dtype", "shape", "data_offsets": [begin, end)}, and
//	             optionally "__metadata__": {string: string}; padded with spaces
//	the rest     the tensors' bytes, little-endian, row-major, without gaps or overlap
//
// The reader trusts nothing: it bounds the header, and refuses duplicate names, offsets that
// overlap or leave gaps, and sizes that disagree with dtype and shape, before it touches data.
//
// The package is a leaf: it imports the standard library only. Begin at [File].
package safetensors
