package unet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/base/normalization"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

var (
	_ kernels.RawNetwork = (*Net)(nil)
	_ kernels.Trainable  = (*Net)(nil)
)

// Parse returns the network of a config.json; see [ParseConfig].
func Parse(config []byte) (*Net, error) {
	cfg, err := ParseConfig(config)
	if err != nil {
		return nil, err
	}
	return New(cfg)
}

// Config returns the configuration the network was made from.
func (n *Net) Config() Config {
	c := n.cfg
	c.ChannelMult, c.AttnResolutions = slices.Clone(c.ChannelMult), slices.Clone(c.AttnResolutions)
	c.ResampleFilter, c.Classes = slices.Clone(c.ResampleFilter), slices.Clone(c.Classes)
	c.Normalization = c.Normalization.Clone()
	return c
}

// MarshalJSON writes the config.json.
func (n *Net) MarshalJSON() ([]byte, error) { return json.Marshal(n.cfg) }

// Shape implements [kernels.Architecture].
func (n *Net) Shape() kernels.Shape {
	c := n.Config()
	return kernels.Shape{
		Type: c.ModelType, Height: c.ImgResolution.Height, Width: c.ImgResolution.Width, Channels: c.ImgChannels,
		Labels: c.LabelDim, Classes: c.Classes, Parametrization: c.Parametrization.Kind(), Range: c.noiseLevels(),
		Normalization: c.Normalization,
	}
}

// On implements [kernels.Architecture]: the network serves every basis.
func (n *Net) On([][]float32, *basis.Basis) (kernels.Network, error) { return n, nil }

// Spec implements [kernels.Network].
func (n *Net) Spec() kernels.Spec {
	c := n.cfg
	c.Normalization = nil // is no part of the graph
	key, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("unet: network configuration: %v", err))
	}
	return kernels.Spec{
		Key:    fmt.Sprintf("unet %x", sha256.Sum256(key)),
		Height: c.ImgResolution.Height, Width: c.ImgResolution.Width, Channels: c.ImgChannels,
		Labels: c.LabelDim, Ratios: c.RatioEmbedding, SigmaData: c.SigmaData, Dropout: c.Dropout,
		Parametrization: c.Parametrization, Range: c.noiseLevels(),
	}
}

// Raw implements [kernels.RawNetwork]: [Net.Apply] without augmentation labels.
func (n *Net) Raw(s *nn.Scope, z, noise, ratios, label *kernels.Node) *kernels.Node {
	return n.Apply(s, z, noise, ratios, label, nil)
}

// Ratios implements [kernels.Trainable].
func (n *Net) Ratios() int { return n.cfg.RatioEmbedding }

// WithRatios implements [kernels.Trainable].
func (n *Net) WithRatios(ratios int) (kernels.Trainable, error) {
	c := n.Config()
	c.RatioEmbedding = ratios
	return New(c)
}

// Normalized implements [kernels.Architecture].
func (n *Net) Normalized(a *normalization.Affine) kernels.Architecture {
	m := *n
	m.cfg.Normalization = a.Clone()
	return &m
}

// WithDropout returns the same network with another rate of dropout in training.
func (n *Net) WithDropout(rate float64) *Net {
	m := *n
	m.cfg.Dropout = rate
	return &m
}
