package checkpoint

import (
	"encoding/json"
	"fmt"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Network is what a config.json describes: one of EDM's UNets, a *[unet.Net], or the
// laboratory's Gaussian mixture, a *[mixture.Net].
type Network interface {
	Params() []nn.Param
	ParamCount() int
	// Load picks the values of Params out of a state dict, and State is its inverse.
	Load(state []unet.Tensor) ([][]float32, error)
	State(values [][]float32) []unet.Tensor
}

var (
	_ Network = (*unet.Net)(nil)
	_ Network = (*mixture.Net)(nil)
)

// ParseNetwork returns the network of a config.json; its model_type tells which kind
// it is.
func ParseNetwork(config []byte) (Network, error) {
	var head struct {
		ModelType string `json:"model_type"`
	}
	if json.Unmarshal(config, &head) == nil && head.ModelType == mixture.ModelType {
		cfg, err := mixture.ParseConfig(config)
		if err != nil {
			return nil, err
		}
		return mixture.NewNet(cfg)
	}
	cfg, err := unet.ParseConfig(config)
	if err != nil {
		return nil, err
	}
	return unet.New(cfg)
}

// ConfigOf returns the configuration of a network, which JSON writes as its
// config.json.
func ConfigOf(n Network) any {
	switch n := n.(type) {
	case *unet.Net:
		return n.Config()
	case *mixture.Net:
		return n.Config()
	}
	panic(fmt.Sprintf("checkpoint: a network of type %T", n))
}

// Shape is what a network's configuration says of its images and classes.
type Shape struct {
	Type                    string // the configuration's model_type
	Height, Width, Channels int
	Labels                  int // 0 for an unconditional network
	Classes                 []string
}

// ShapeOf returns the shape of a network.
func ShapeOf(n Network) Shape {
	switch n := n.(type) {
	case *unet.Net:
		c := n.Config()
		return Shape{c.ModelType, c.ImgResolution, c.ImgResolution, c.ImgChannels, c.LabelDim, c.Classes}
	case *mixture.Net:
		c := n.Config()
		return Shape{c.ModelType, c.ImgResolution.Height, c.ImgResolution.Width, c.ImgChannels, c.LabelDim, c.Classes}
	}
	panic(fmt.Sprintf("checkpoint: a network of type %T", n))
}

// OnBasis returns the network as kernels take it, with noise in the subspaces of b. A
// mixture is an error for a basis that its covariances do not commute with; see
// [mixture.Net.On].
func (m *Model) OnBasis(b *basis.Basis) (kernels.Network, error) {
	switch n := m.Net.(type) {
	case *unet.Net:
		return kernels.UNet(n), nil
	case *mixture.Net:
		return n.On(m.Values, b)
	}
	panic(fmt.Sprintf("checkpoint: a network of type %T", m.Net))
}
