package kernels

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
	"github.com/anisoflight/anisoflight/schedule"
)

// Node is a value in a computation graph.
type Node = graph.Node

// Spec is what a Model has to know of a network.
type Spec struct {
	// Key names the network's structure, constants included, in the cache of
	// compiled programs: two networks with one key append the same graph.
	Key string
	// Height, Width and Channels of an image.
	Height, Width, Channels int
	// Labels is the length of the class vector; 0 for an unconditional network.
	Labels int
	// Ratios is the number of log-ratio inputs, J−1 or 0.
	Ratios int
	// SigmaData is σ_d; 0 means that of the parametrisation, or 0.5.
	SigmaData float64
	// Parametrization says how the flow is made of a RawNetwork's output; nil means
	// EDM's with SigmaData.
	Parametrization *parametrization.Parametrization
	// Range is the noise levels that the network was trained on.
	Range schedule.Range
	// Dropout is the rate of the network's dropout in training, for the record.
	Dropout float64
}

// Network is a function that can stand behind a [Model]. It is a [RawNetwork],
// which the model preconditions, or a [FlowNetwork], which is taken as it is.
// A Network holds no values and is safe for concurrent use.
type Network interface {
	Spec() Spec
	// Params lists the parameters in the order of every [][]float32 of values;
	// none for an analytic network.
	Params() []nn.Param
}

// RawNetwork is a network F that has to be wrapped: it is given scaled input and
// predicts what its parametrisation says.
type RawNetwork interface {
	Network
	// Raw appends F to the graph and returns it, shaped as z.
	//
	//	z       [B, H, W, C]  Σ_j in_j P_j x; may be bfloat16, all else is not
	//	noise   [B]           the parametrisation's label of σ_geo = Π_j g_j^{1/2J}; EDM's is ln(σ_geo)/4
	//	ratios  [B, Ratios]   ρ_i = ln(g_i/g_geo)/8, i < J; nil if Ratios is 0
	//	label   [B, Labels]   one-hot, all zero for none; nil if Labels is 0
	Raw(s *nn.Scope, z, noise, ratios, label *Node) *Node
}

// FlowNetwork computes the flow M^{1/2} ∇ log p(x) itself, as a function of every g_j.
type FlowNetwork interface {
	Network
	// Flow appends the flow to the graph and returns it, shaped as x.
	//
	//	x       [B, H, W, C]
	//	g       [B, J]
	//	label   [B, Labels]   one-hot, all zero for none; nil if Labels is 0
	Flow(s *nn.Scope, x, g, label *Node) *Node
}
