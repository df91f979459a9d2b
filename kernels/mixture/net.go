package mixture

import (
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// The parameters of a stored mixture of n components over d = H·W·C values, pixels in
// the order of an image, rows first, channels last.
const (
	meansName     = "means"     // [n, d]     μ_i
	variancesName = "variances" // [n, d]     λ_i, the covariance's eigenvalues
	axesName      = "axes"      // [n, d, d]  U_i, its eigenvectors in rows
)

// axesTolerance is how far U_i U_iᵀ may be from the identity: float32 and its sums.
const axesTolerance = 1e-4

// Net is a mixture whose numbers are parameters: the covariance of component i is
// Σ_i = U_iᵀ diag(λ_i) U_i. It is what a model folder with model_type Mixture holds;
// its classes are those of its components. On joins it with a basis.
type Net struct{ cfg Config }

// NewNet returns the mixture that a configuration describes.
func NewNet(c Config) (*Net, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Components, c.Classes = slices.Clone(c.Components), slices.Clone(c.Classes)
	return &Net{cfg: c}, nil
}

// Config returns the configuration.
func (n *Net) Config() Config {
	c := n.cfg
	c.Components, c.Classes = slices.Clone(c.Components), slices.Clone(c.Classes)
	return c
}

// Params lists the parameters: means, variances and axes. None is trained.
func (n *Net) Params() []nn.Param {
	count, d := len(n.cfg.Components), n.cfg.Pixels()
	return []nn.Param{
		{Name: meansName, Shape: []int{count, d}, Frozen: true},
		{Name: variancesName, Shape: []int{count, d}, Frozen: true},
		{Name: axesName, Shape: []int{count, d, d}, Frozen: true},
	}
}

// ParamCount returns the number of values of all parameters.
func (n *Net) ParamCount() int {
	var sum int
	for _, p := range n.Params() {
		sum += p.Size()
	}
	return sum
}

// Load picks the values of Params out of a state dict, which holds nothing else. A
// tensor that is missing, unknown, of another shape or not finite, a variance that is
// not positive and axes that are not orthonormal are a *[unet.StateError].
func (n *Net) Load(state []unet.Tensor) ([][]float32, error) {
	fail := func(tensor, format string, args ...any) error {
		return &unet.StateError{Tensor: tensor, Reason: fmt.Sprintf(format, args...)}
	}
	params := n.Params()
	values := make([][]float32, len(params))
	for _, t := range state {
		i := slices.IndexFunc(params, func(p nn.Param) bool { return p.Name == t.Name })
		switch {
		case i < 0:
			return nil, fail(t.Name, "is unknown to a mixture")
		case values[i] != nil:
			return nil, fail(t.Name, "is there twice")
		case !slices.Equal(t.Shape, params[i].Shape) || len(t.Data) != params[i].Size():
			return nil, fail(t.Name, "has shape %v and %d values; config.json asks for %v", t.Shape, len(t.Data), params[i].Shape)
		}
		for k, v := range t.Data {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return nil, fail(t.Name, "holds %v at %d", v, k)
			}
			if t.Name == variancesName && !(v > 0) {
				return nil, fail(t.Name, "holds %v at %d; variances are positive", v, k)
			}
		}
		values[i] = t.Data
	}
	for i, p := range params {
		if values[i] == nil {
			return nil, fail(p.Name, "is missing; config.json asks for it with shape %v", p.Shape)
		}
	}
	d := n.cfg.Pixels()
	for i := range n.cfg.Components {
		if row, far := worstRow(values[2][i*d*d:(i+1)*d*d], d); far > axesTolerance {
			return nil, fail(axesName, "row %d of component %d is %.2g away from orthonormal; at most %g", row, i, far, axesTolerance)
		}
	}
	return values, nil
}

// worstRow returns the row r of U [d·d] at which U Uᵀ is farthest from the identity,
// in the maximum norm.
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

// State returns the state dict with these values of Params. It shares their memory.
func (n *Net) State(values [][]float32) []unet.Tensor {
	params := n.Params()
	out := make([]unet.Tensor, len(params))
	for i, p := range params {
		out[i] = unet.Tensor{Name: p.Name, Shape: p.Shape, Data: values[i]}
	}
	return out
}

// Sample fills dst with one image [d] of component i, from d unit normal numbers.
func (n *Net) Sample(values [][]float32, i int, normal, dst []float32) {
	d := n.cfg.Pixels()
	copy(dst, values[0][i*d:(i+1)*d])
	for a := range d {
		scale := normal[a] * float32(math.Sqrt(float64(values[1][i*d+a])))
		for k, v := range values[2][(i*d+a)*d : (i*d+a+1)*d] {
			dst[k] += scale * v
		}
	}
}
