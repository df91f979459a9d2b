// Package graphnet builds networks that a file describes, operation by operation: what a PyTorch module's export says
// of its forward pass, with the module's own names of its tensors (docs/networks.md).
//
// A config.json of model_type Graph holds the sizes of images and classes and, as graph, a list of nodes in PyTorch's
// ATen operations: name, op, arguments, shape, type. Parse reads it within limits, refuses what no rule of this package
// can compute, and draws the whole graph once without a device, so that what it returns can be built. A rule appends
// one operation and lives in the file of its family; rules.go lists them all. Each calls package nn where that has the
// piece, which decides on precision, and images keep their channels last: a value is a node with an order of axes, and
// a permutation in PyTorch moves no data.
//
// Begin reading at Parse, then value, then rules.
package graphnet
