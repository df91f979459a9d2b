// Package nn holds the layers of the networks: explicit parameter tables, and
// functions that append a layer to a computation graph.
package nn
