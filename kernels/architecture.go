package kernels

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Shape describes the images and classes of an architecture.
type Shape struct {
	Type                    string // the configuration's model_type
	Height, Width, Channels int
	Labels                  int            // 0 for an unconditional network
	Classes                 []string       // names of the labels: none, or Labels of them
	Parametrization         string         // one of parametrization.Kinds; empty for a network that is the flow itself
	Range                   schedule.Range // noise levels that the network was trained on
	// Normalization maps the data's units to those of the network; nil for images in [−1, 1].
	Normalization *normalization.Affine
}

// Architecture is what a model's config.json describes: a network without values and basis. Its JSON is that
// config.json, with every default filled in. An Architecture is immutable; checkpoint.ParseNetwork reads one.
type Architecture interface {
	json.Marshaler
	Shape() Shape
	// Params lists the parameters in the order of every [][]float32 of values.
	Params() []nn.Param
	ParamCount() int
	// Load takes the values of Params from a state dict, and State is its inverse. Check compares a state dict that is
	// read one tensor at a time.
	Load(state []nn.Tensor) ([][]float32, error)
	State(values [][]float32) []nn.Tensor
	Check() *nn.Check
	// NetworkOn returns the network with noise in the subspaces of b, or an error if it does not serve that basis. Only
	// an architecture whose graph depends on its values reads them.
	NetworkOn(values [][]float32, b *basis.Basis) (Network, error)
	// Normalized returns the same network for data in other units; nil means images in [−1, 1].
	Normalized(n *normalization.Affine) Architecture
}

// Trainable is an [Architecture] whose values are learned. One that is not Trainable is exact and keeps its values.
type Trainable interface {
	Architecture
	// Init draws initial values.
	Init(seed uint64) [][]float32
	// Ratios returns the number of log-ratio inputs.
	Ratios() int
	// WithRatios returns the same network with n log-ratio inputs. Values without them load as zeros, with which the
	// network computes the same as before.
	WithRatios(n int) (Trainable, error)
}

// Sampler is an [Architecture] that knows the distribution of its images.
type Sampler interface {
	Architecture
	// Draw fills image [H, W, C] with a sample and returns its label. It needs a number u in [0, 1) and one unit normal
	// number for each value of the image.
	Draw(values [][]float32, u float64, normal, image []float32) (label int)
}

// Resolution is an image's height and width; JSON writes one number if they are equal.
type Resolution struct{ Height, Width int }

// Square returns the size of n×n pixels.
func Square(n int) Resolution { return Resolution{n, n} }

// String returns "32" for 32×32 pixels, and "32×48" if the sides differ.
func (r Resolution) String() string {
	if r.Height == r.Width {
		return strconv.Itoa(r.Height)
	}
	return fmt.Sprintf("%d×%d", r.Height, r.Width)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (r Resolution) MarshalJSON() ([]byte, error) {
	if r.Height == r.Width {
		return json.Marshal(r.Height)
	}
	return json.Marshal([2]int{r.Height, r.Width})
}

// UnmarshalJSON reads a number, or [height, width].
func (r *Resolution) UnmarshalJSON(b []byte) error {
	var n int
	if json.Unmarshal(b, &n) == nil {
		*r = Square(n)
		return nil
	}
	var both []int
	if err := json.Unmarshal(b, &both); err != nil || len(both) != 2 {
		return errors.New("must be a number of pixels, or [height, width]")
	}
	*r = Resolution{both[0], both[1]}
	return nil
}

// Node is a value in a computation graph.
type Node = graph.Node

// Spec describes a network to a Model.
type Spec struct {
	// Key names the network's structure, constants included, in the cache of compiled programs. Networks with the same
	// key append the same graph.
	Key                     string
	Height, Width, Channels int     // of an image
	Labels                  int     // length of the class vector; 0 for an unconditional network
	Ratios                  int     // number of log-ratio inputs, J−1 or 0
	SigmaData               float64 // σ_d; 0 means that of the parametrisation, or 0.5
	// Parametrization says how a RawNetwork's output becomes the flow; nil means EDM's with SigmaData.
	Parametrization *parametrization.Parametrization
	Range           schedule.Range // noise levels that the network was trained on
}

// Network is a function that a [Model] evaluates: a [RawNetwork], which the model preconditions, or a [FlowNetwork],
// which it does not. A Network holds no values and is safe for concurrent use.
type Network interface {
	Spec() Spec
	// Params lists the parameters in the order of every [][]float32 of values; none for an analytic network.
	Params() []nn.Param
}

// RawNetwork is a network F that takes scaled input and predicts what its parametrisation says.
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
