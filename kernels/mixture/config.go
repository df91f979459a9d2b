package mixture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/base/normalization"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// ModelType is the model_type of a mixture's config.json.
const ModelType = "Mixture"

// The sizes a stored mixture may have.
const (
	maxPixels = 1 << 12 // values of an image
	maxValues = 1 << 26 // of all axes together: 256 MiB
	maxLabels = 1 << 20
)

// Config is the config.json of a mixture: what its tensors do not say. Where they
// have the same meaning, fields have the names of EDM's keyword arguments.
type Config struct {
	ModelType     string             `json:"model_type"`     // Mixture
	ImgResolution kernels.Resolution `json:"img_resolution"` // one number, or [height, width]
	ImgChannels   int                `json:"img_channels"`
	LabelDim      int                `json:"label_dim"`            // number of classes, 0 = unconditional
	SigmaData     float64            `json:"sigma_data,omitempty"` // default 0.5: the step of finite differences
	Components    []Component        `json:"components"`
	Classes       []string           `json:"classes,omitempty"` // names of the labels: none, or LabelDim
	// Normalization maps data in units of their own to those of the law; nil means images in [−1, 1]
	Normalization *normalization.Affine `json:"normalization,omitempty"`
}

// Component is the part of a component's law that is not a tensor.
type Component struct {
	Weight float64 `json:"weight"`          // π_i > 0, relative to the others
	Label  int     `json:"label,omitempty"` // its class, in a mixture with classes
}

// ParseConfig decodes a config.json strictly. What cannot be used is a
// *[nn.ConfigError].
func ParseConfig(data []byte) (Config, error) {
	var c Config
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, &nn.ConfigError{Reason: fmt.Sprintf("want one JSON object of a mixture's fields: %v", err)}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return c, &nn.ConfigError{Reason: "more than one JSON value"}
	}
	return c, c.Validate()
}

// Validate returns the first rule that c breaks, as a *[nn.ConfigError].
func (c Config) Validate() error {
	bad := func(field, format string, args ...any) error {
		return &nn.ConfigError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	h, w, n := c.ImgResolution.Height, c.ImgResolution.Width, len(c.Components)
	switch {
	case c.ModelType != ModelType:
		return bad("model_type", "is %q; want %s", c.ModelType, ModelType)
	case h < 1 || w < 1 || c.ImgChannels < 1:
		return bad("img_resolution", "images of %d×%d pixels in %d channels; every size is at least 1", h, w, c.ImgChannels)
	case h > maxPixels || w > maxPixels || c.ImgChannels > maxPixels || h*w > maxPixels || h*w*c.ImgChannels > maxPixels:
		return bad("img_resolution", "images of %d×%d pixels in %d channels; a mixture takes up to %d values", h, w,
			c.ImgChannels, maxPixels)
	case n == 0:
		return bad("components", "there are none")
	case n*c.Pixels()*c.Pixels() > maxValues:
		return bad("components", "%d of %d values each are too large: all axes together may have %d", n, c.Pixels(),
			maxValues)
	case c.LabelDim < 0 || c.LabelDim > maxLabels:
		return bad("label_dim", "is %d; it lies in 0 … %d", c.LabelDim, maxLabels)
	case !(c.SigmaData >= 0) || math.IsInf(c.SigmaData, 1):
		return bad("sigma_data", "is %g; it is positive", c.SigmaData)
	case len(c.Classes) != 0 && len(c.Classes) != c.LabelDim:
		return bad("classes", "%d names for %d classes", len(c.Classes), c.LabelDim)
	}
	if err := c.Normalization.Fits(c.ImgChannels); err != nil {
		return bad("normalization", "%v", err)
	}
	for i, k := range c.Components {
		if !(k.Weight > 0) || math.IsInf(k.Weight, 1) {
			return bad("components", "component %d has weight %g; it is positive", i, k.Weight)
		}
		if k.Label < 0 || k.Label >= max(c.LabelDim, 1) {
			return bad("components", "component %d has label %d; label_dim is %d", i, k.Label, c.LabelDim)
		}
	}
	seen := make([]bool, max(c.LabelDim, 1))
	for _, k := range c.Components {
		seen[k.Label] = true
	}
	if label := slices.Index(seen[:c.LabelDim], false); label >= 0 {
		return bad("components", "class %d has none", label)
	}
	return nil
}

// Pixels returns H·W·C, the number of values of an image.
func (c Config) Pixels() int { return c.ImgResolution.Height * c.ImgResolution.Width * c.ImgChannels }
