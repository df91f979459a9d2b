// Package unet holds the networks of EDM (Karras et al., "Elucidating the Design Space of Diffusion-Based Generative
// Models", arXiv 2206.00364): SongUNet in the forms DDPM++ and NCSN++, and DhariwalUNet (ADM).
//
// A [Config] holds EDM's own keyword arguments under EDM's own names, and a [Net] made from it has EDM's parameters:
// the names, shapes, order and initial distributions of its state dict, so that checkpoints go both ways unchanged.
// [Net.Apply] appends the raw network F to a computation graph; the wrapping around it (preconditioning) is package
// kernels' business.
//
// There is one addition to EDM: with ratio_embedding = J−1 the network takes the log-ratios of the noise levels of J
// subspaces, through linear maps that start at zero. A checkpoint without them loads with zeros and computes the same.
//
// Begin reading at [New]; the two families are built in layout.go from the block in block.go.
package unet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Net is the shape of one network: its parameters and the graph it appends. It holds no values, and is immutable and
// safe for concurrent use.
//
// Its parameters are in the order of EDM's state dict, those of the ratio embedding before map_layer0. A Fourier
// embedding's frequencies, which EDM calls a buffer, are among them, Frozen: they differ between checkpoints.
type Net struct {
	nn.Layout
	cfg   Config
	embed *embedder
	steps []step
}

// New returns the network of a configuration, or a *[nn.ConfigError].
func New(cfg Config) (*Net, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.AttnResolutions = append([]int{}, cfg.AttnResolutions...) // JSON writes none as [], which is not the default
	build := buildDhariwal
	if cfg.ModelType == SongUNet {
		build = buildSong
	}
	embed, l := build(cfg)
	n := &Net{Layout: embed.entries, cfg: cfg, embed: embed, steps: l.steps}
	for _, st := range n.steps {
		n.Layout = append(n.Layout, st.entries...)
	}
	return n, n.checkSizes(l.blocks)
}

// checkSizes refuses what only the finished layout shows.
func (n *Net) checkSizes(blocks []*block) error {
	total := 0
	for _, e := range n.Layout {
		if total += e.Size(); total > maxParams {
			return nn.ConfigErrorf("model_channels", "the network has more than %d parameters; make it smaller", maxParams)
		}
		if name, ok := strings.CutSuffix(e.Name, ".weight"); ok && len(e.Shape) == 1 {
			norm := nn.GroupNorm{Channels: e.Shape[0]}
			if g := norm.Groups(); e.Shape[0]%g != 0 {
				return nn.ConfigErrorf("model_channels",
					"%s would split %d channels into %d groups; choose multiples of 4 up to 128 and of 32 beyond", name,
					e.Shape[0], g)
			}
		}
	}
	for _, b := range blocks {
		if a := b.attention; a != nil && a.Channels%a.Heads != 0 {
			return nn.ConfigErrorf("model_channels",
				"%s would split %d channels into %d heads; choose a multiple of 64", a.Name, a.Channels, a.Heads)
		}
	}
	return nil
}

// Apply appends the raw network to the graph and returns
//
//	F(x, noise, ratios, label, augment), shaped as x
//
//	x        [B, H, W, C]  input scaled to unit variance
//	noise    [B]           noise label, ln(σ)/4 in EDM
//	ratios   [B, J−1]      log-ratio labels; nil means zeros
//	label    [B, L]        one-hot class labels; nil means none, that is zeros
//	augment  [B, A]        augmentation labels; nil means none
//
// All in one float type, which is also the scope's; x alone may be bfloat16 among float32, and is what decides on the
// precision (see package nn). In training (s.RNG set) dropout is active and advances s.RNG. Apply panics if a shape
// does not fit the configuration, as the graph library does.
func (n *Net) Apply(s *nn.Scope, x, noise, ratios, label, augment *graph.Node) *graph.Node {
	w := &walk{scope: s, dropout: n.cfg.Dropout, x: x, pyramid: x}
	w.emb = n.embed.apply(s, noise, ratios, label, augment)
	for _, st := range n.steps {
		st.apply(w)
	}
	return w.x
}

var (
	_ kernels.RawNetwork = (*Net)(nil)
	_ kernels.Trainable  = (*Net)(nil)
)

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

// NetworkOn implements [kernels.Architecture]: the network serves every basis.
func (n *Net) NetworkOn([][]float32, *basis.Basis) (kernels.Network, error) { return n, nil }

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
		Labels: c.LabelDim, Ratios: c.RatioEmbedding, SigmaData: c.SigmaData,
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
