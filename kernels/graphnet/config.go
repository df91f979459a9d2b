package graphnet

import (
	"encoding/json"
	"fmt"

	lib "github.com/gomlx/gomlx/pkg/core/dtypes"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
)

// ModelType is the model_type of a described network's config.json.
const ModelType = "Graph"

// Config is the config.json of a described network. Where they have the same meaning, fields have the names of EDM's
// keyword arguments.
type Config struct {
	ModelType      string             `json:"model_type"`     // Graph
	ImgResolution  kernels.Resolution `json:"img_resolution"` // one number, or [height, width]
	ImgChannels    int                `json:"img_channels"`
	LabelDim       int                `json:"label_dim"`                 // number of classes, 0 = unconditional
	LabelDropout   float64            `json:"label_dropout,omitempty"`   // rate of dropping the class, in training
	RatioEmbedding int                `json:"ratio_embedding,omitempty"` // number of log-ratio inputs
	Classes        []string           `json:"classes,omitempty"`         // names of the labels: none, or LabelDim
	// Parametrization says how D is made of the network's output; nil means EDM's
	Parametrization *parametrization.Parametrization `json:"parametrization,omitempty"`
	// Normalization maps data in units of their own to those that the network sees; nil means images in [−1, 1]
	Normalization *normalization.Affine `json:"normalization,omitempty"`
	Graph         json.RawMessage       `json:"graph"` // nodes and output
}

func (c Config) check() error {
	h, w := c.ImgResolution.Height, c.ImgResolution.Width
	if err := nn.Broken(append(
		nn.ImageRules(h, w, c.ImgChannels, c.LabelDim, c.RatioEmbedding, c.Classes),
		nn.OneOf("model_type", c.ModelType, ModelType),
		nn.Must(h*w <= maxElements/max(c.ImgChannels, 1), "img_resolution",
			fmt.Sprintf("that of images of up to %d values", maxElements), fmt.Sprintf("%d×%d", h, w)),
		nn.Must(c.LabelDropout >= 0 && c.LabelDropout < 1, "label_dropout", "a number in [0, 1)", c.LabelDropout),
	)...); err != nil {
		return err
	}
	if len(c.Graph) == 0 {
		return nn.ConfigErrorf("graph", "is missing")
	}
	if err := c.Normalization.Fits(c.ImgChannels); err != nil {
		return nn.ConfigErrorf("normalization", "%v", err)
	}
	return nil
}

// kind is what the package distinguishes of PyTorch's types: every float is computed in the precision of the model.
type kind int

const (
	float kind = iota
	integer
	boolean
)

var kinds = map[string]kind{
	"float64": float, "float32": float, "float16": float, "bfloat16": float,
	"int64": integer, "int32": integer, "int16": integer, "int8": integer, "uint8": integer, "bool": boolean,
}

func kindOf(t lib.DType) kind {
	switch {
	case t.IsFloat():
		return float
	case t == lib.Bool:
		return boolean
	}
	return integer
}

func (k kind) String() string { return [...]string{"floating", "integer", "boolean"}[k] }

// Bounds on what a file may ask for, far above published networks and far below what would exhaust a machine before an
// error could be given.
const (
	maxText     = 16 << 20 // bytes of a config.json
	maxNodes    = 20000    // of a graph; SDXL's network has about 6000
	maxNodeText = 1 << 16  // bytes of a node
	maxDepth    = 3        // lists within lists in arguments
	maxRank     = 8        // axes of a tensor
	maxSize     = 1 << 16  // strides, paddings and factors
	maxElements = 1 << 28  // values of one tensor, for one image
	maxTotal    = 1 << 36  // values of all tensors together, for one image
	maxParams   = 1 << 32  // values of all parameters together
	maxFLOPs    = 1e15     // of one evaluation on one image
	maxGroups   = 1 << 12  // of a convolution
	maxParts    = 1 << 12  // of a split
	maxRows     = 1 << 20  // of a table that is indexed
	maxMatrix   = 1 << 22  // values of a matrix that resamples an axis
)
