package graphnet

// Bounds on what a file may ask for, far above published networks and far below what would
// exhaust a machine before an error could be given.
const (
	maxText     = 32 << 20 // bytes of a config.json
	maxNodes    = 20000    // of a graph; SDXL's network has about 6000
	maxNodeText = 1 << 16  // bytes of a node
	maxEntries  = 1 << 20  // values in the arguments of all nodes together
	maxDepth    = 3        // lists within lists in arguments
	maxRank     = 8        // axes of a tensor
	maxSize     = 1 << 16  // rows, columns and channels of an image
	maxLabels   = 1 << 20  // classes
	maxElements = 1 << 28  // values of one tensor, for one image
	maxTotal    = 1 << 36  // values of all tensors together, for one image
	maxParams   = 1 << 32  // values of all parameters together
	maxFLOPs    = 1e15     // of one evaluation on one image
	maxGroups   = 1 << 12  // of a convolution
	maxParts    = 1 << 12  // of a split
	maxRows     = 1 << 20  // of a table that is indexed
	maxNameText = 1 << 10  // bytes of a name
)
