// Package mixture has Gaussian mixtures, whose flow is known in closed form.
//
// For p_0 = Σ_i π_i N(μ_i, Σ_i) the noisy density is p_t = Σ_i π_i N(μ_i, S_i), S_i = Σ_i + M with M = Σ_j g_j P_j, and
//
//	flow(x) = M^{1/2} ∇ log p_t(x) = M^{1/2} Σ_i ρ_i(x) S_i^{-1}(μ_i − x),
//	ρ_i(x) ∝ π_i |S_i|^{-1/2} exp( −½ (x−μ_i)ᵀ S_i^{-1} (x−μ_i) ).
//
// So estimators can be compared with finite differences of the loss, and solvers with the exact solution. Covariances
// must not mix the subspaces of the noise.
//
// Begin with [Net] and principal.go; law.go makes a mixture of images.
package mixture

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// The parameters of a stored mixture of n components over d = H·W·C values, pixels in the order of an image, rows
// first, channels last.
const (
	meansName     = "means"     // [n, d]     μ_i
	variancesName = "variances" // [n, d]     λ_i, the covariance's eigenvalues
	axesName      = "axes"      // [n, d, d]  U_i, its eigenvectors in rows
)

// axesTolerance is how far U_i U_iᵀ may be from the identity: float32 and its sums.
const axesTolerance = 1e-4

// Net is a mixture as in a model folder with model_type Mixture. Its parameters are means, variances and axes: the
// covariance of component i is Σ_i = U_iᵀ diag(λ_i) U_i. None is trained. A Net is immutable.
type Net struct {
	nn.Layout
	cfg Config
}

var _ kernels.Sampler = (*Net)(nil)

// Parse returns the mixture of a config.json, which it decodes strictly. What cannot be used is a *[nn.ConfigError].
func Parse(config []byte) (*Net, error) {
	var c Config
	if err := nn.DecodeConfig(config, "a mixture's fields", &c); err != nil {
		return nil, err
	}
	return NewNet(c)
}

// NewNet returns the mixture that a configuration describes.
func NewNet(c Config) (*Net, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Components, c.Classes = slices.Clone(c.Components), slices.Clone(c.Classes)
	count, d := len(c.Components), c.Pixels()
	return &Net{cfg: c, Layout: nn.Layout{
		{Param: nn.Param{Name: meansName, Shape: []int{count, d}, Frozen: true}},
		{Param: nn.Param{Name: variancesName, Shape: []int{count, d}, Frozen: true}, Check: checkVariances},
		{
			Param: nn.Param{Name: axesName, Shape: []int{count, d, d}, Frozen: true},
			Check: func(axes []float32) string { return checkAxes(axes, d) },
		},
	}}, nil
}

// MarshalJSON writes the config.json.
func (n *Net) MarshalJSON() ([]byte, error) { return json.Marshal(n.cfg) }

// Shape implements [kernels.Architecture].
func (n *Net) Shape() kernels.Shape {
	c := n.cfg
	return kernels.Shape{
		Type: c.ModelType, Height: c.ImgResolution.Height, Width: c.ImgResolution.Width, Channels: c.ImgChannels,
		Labels: c.LabelDim, Classes: slices.Clone(c.Classes), Normalization: c.Normalization.Clone(),
	}
}

// Normalized implements [kernels.Architecture].
func (n *Net) Normalized(a *normalization.Affine) kernels.Architecture {
	m := *n
	m.cfg.Normalization = a.Clone()
	return &m
}

// ParamCount returns the number of values of all parameters.
func (n *Net) ParamCount() int {
	var sum int
	for _, p := range n.Params() {
		sum += p.Size()
	}
	return sum
}

// checkVariances requires positive values.
func checkVariances(variances []float32) string {
	for i, v := range variances {
		if !(v > 0) {
			return fmt.Sprintf("holds %v at %d; variances are positive", v, i)
		}
	}
	return ""
}

// checkAxes requires the rows of each component's [d·d] to be orthonormal.
func checkAxes(axes []float32, d int) string {
	i := 0
	for u := range slices.Chunk(axes, d*d) {
		if row, far := worstRow(u, d); far > axesTolerance {
			return fmt.Sprintf("row %d of component %d is %.2g away from orthonormal; at most %g", row, i, far, axesTolerance)
		}
		i++
	}
	return ""
}

// worstRow returns the row r of U [d·d] at which U Uᵀ is farthest from the identity, in the maximum norm.
func worstRow(axes []float32, d int) (row int, far float64) {
	for i := range d {
		a := axes[i*d : (i+1)*d]
		for j := range i + 1 {
			var sum float64
			for k, v := range axes[j*d : (j+1)*d] {
				sum += float64(v) * float64(a[k])
			}
			if i == j {
				sum--
			}
			if math.Abs(sum) > far {
				row, far = i, math.Abs(sum)
			}
		}
	}
	return row, far
}

// Draw implements [kernels.Sampler]: u chooses the component.
func (n *Net) Draw(values [][]float32, u float64, normal, image []float32) (label int) {
	var total float64
	for _, k := range n.cfg.Components {
		total += k.Weight
	}
	u *= total
	i := 0
	for i < len(n.cfg.Components)-1 && u >= n.cfg.Components[i].Weight {
		u -= n.cfg.Components[i].Weight
		i++
	}
	d := n.cfg.Pixels()
	copy(image, values[0][i*d:(i+1)*d])
	for a := range d {
		scale := normal[a] * float32(math.Sqrt(float64(values[1][i*d+a])))
		for k, v := range values[2][(i*d+a)*d : (i*d+a+1)*d] {
			image[k] += scale * v
		}
	}
	return n.cfg.Components[i].Label
}

// ModelType is the model_type of a mixture's config.json.
const ModelType = "Mixture"

// The sizes a stored mixture may have.
const (
	maxPixels = 1 << 12 // values of an image
	maxValues = 1 << 26 // of all axes together: 256 MiB
	maxLabels = 1 << 20
)

// Config is the config.json of a mixture: what its tensors do not say. Where they have the same meaning, fields have
// the names of EDM's keyword arguments.
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

// Validate returns the first rule that c breaks, as a *[nn.ConfigError].
func (c Config) Validate() error {
	h, w, channels, n := c.ImgResolution.Height, c.ImgResolution.Width, c.ImgChannels, len(c.Components)
	rules := []nn.Rule{
		nn.OneOf("model_type", c.ModelType, ModelType),
		nn.Integer("img_resolution", h, 1, maxPixels),
		nn.Integer("img_resolution", w, 1, maxPixels),
		nn.Integer("img_channels", channels, 1, maxPixels),
		nn.Must(h*w*channels <= maxPixels, "img_resolution", fmt.Sprintf("that of images of up to %d values", maxPixels),
			fmt.Sprintf("%d×%d pixels in %d channels", h, w, channels)),
		nn.Must(n > 0 && n*c.Pixels()*c.Pixels() <= maxValues, "components", fmt.Sprintf(
			"one or more, whose axes have %d values together at most", maxValues), n),
		nn.Integer("label_dim", c.LabelDim, 0, maxLabels),
		nn.Must(c.SigmaData >= 0 && !math.IsInf(c.SigmaData, 1), "sigma_data", "a positive number", c.SigmaData),
		nn.Must(len(c.Classes) == 0 || len(c.Classes) == c.LabelDim, "classes",
			fmt.Sprintf("no names or label_dim = %d of them", c.LabelDim), len(c.Classes)),
	}
	seen := make(map[int]bool, n)
	for i, k := range c.Components {
		seen[k.Label] = true
		rules = append(rules,
			nn.Must(k.Weight > 0 && !math.IsInf(k.Weight, 1), "components", "of positive weights",
				fmt.Sprintf("%g of component %d", k.Weight, i)),
			nn.Must(k.Label >= 0 && k.Label < max(c.LabelDim, 1), "components",
				fmt.Sprintf("of labels below label_dim = %d", c.LabelDim), fmt.Sprintf("%d of component %d", k.Label, i)))
	}
	if err := nn.Broken(rules...); err != nil {
		return err
	}
	for label := range c.LabelDim {
		if !seen[label] {
			return nn.ConfigErrorf("components", "must have one of each class, got none of class %d", label)
		}
	}
	if err := c.Normalization.Fits(c.ImgChannels); err != nil {
		return nn.ConfigErrorf("normalization", "%v", err)
	}
	return nil
}

// Pixels returns H·W·C, the number of values of an image.
func (c Config) Pixels() int { return c.ImgResolution.Height * c.ImgResolution.Width * c.ImgChannels }
