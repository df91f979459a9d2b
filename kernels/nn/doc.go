// Package nn holds the layers networks are built from.
//
// A layer is a small value (its name in the state dict and its sizes) with two methods: Params lists its tensors with
// PyTorch's names, shapes and EDM's initial distributions; Apply appends it to a computation graph, taking its tensors
// from a [Scope] by name. A [Layout] is the state dict of a whole network, with the rules for reading and writing it.
// Layers hold no values and no nodes, so one network serves any number of graphs, types and devices.
//
// Images are [B, H, W, C] throughout, and every layer works in the type of its input: float32, bfloat16 (see scope.go),
// or in tests float64. All layers are built from operations that can be differentiated any number of times by reverse
// mode.
//
// Begin reading at [Param] and [Scope], then [Conv2D] for the shape of a layer.
package nn
