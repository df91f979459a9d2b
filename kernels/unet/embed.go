package unet

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// embedder turns the conditions (noise level, ratios, class, augmentation) into the vector that every block sees. With
// pos the noise embedding,
//
//	e = pos(noise) + augment + Σ_i W_i pos(ρ_i)
//	SongUNet      silu(layer1(silu(layer0(e + label·√L))))
//	DhariwalUNet  silu(layer1(silu(layer0(e))) + label)
//
// augment and label are linear maps of those inputs.
type embedder struct {
	entries        []nn.Entry
	song           bool
	fourier        bool
	channels       int // of pos
	label, augment *nn.Linear
	ratios         []*nn.Linear
	layer0, layer1 *nn.Linear
	labelDropout   float64
}

const freqs = prefix + "map_noise.freqs"

// newEmbedder takes the initial distributions of the layers; only the label's and the augmentation's differ between the
// families.
func newEmbedder(c Config, channels, width int, initial, initialLabel, initialAugment nn.Init) *embedder {
	e := &embedder{
		song: c.ModelType == SongUNet, fourier: c.EmbeddingType == "fourier",
		channels: channels, labelDropout: c.LabelDropout,
	}
	add := func(name string, in, out int, bias bool, init nn.Init) *nn.Linear {
		l := &nn.Linear{Name: prefix + name, In: in, Out: out, NoBias: !bias, Init: init}
		e.entries = append(e.entries, nn.Entries(l)...)
		return l
	}
	if e.fourier {
		e.entries = append(e.entries, nn.Entry{Param: nn.Param{
			Name: freqs, Shape: []int{channels / 2}, Init: nn.Normal(16), Frozen: true,
		}})
	}
	if e.song && c.LabelDim > 0 {
		e.label = add("map_label", c.LabelDim, channels, true, initialLabel)
	}
	if c.AugmentDim > 0 {
		e.augment = add("map_augment", c.AugmentDim, channels, false, initialAugment)
	}
	for i := range c.RatioEmbedding {
		e.ratios = append(e.ratios, add(fmt.Sprint("map_ratio", i), channels, channels, false, nn.Init{}))
		e.entries[len(e.entries)-1].Optional = true
	}
	e.layer0 = add("map_layer0", channels, width, true, initial)
	e.layer1 = add("map_layer1", width, width, true, initial)
	if !e.song && c.LabelDim > 0 {
		e.label = add("map_label", c.LabelDim, width, false, initialLabel)
	}
	return e
}

// pos embeds a scalar per sample, t [B], to [B, channels]. SongUNet's order is [sin, cos], DhariwalUNet's [cos, sin].
func (e *embedder) pos(s *nn.Scope, t *graph.Node) *graph.Node {
	var f *graph.Node
	if e.fourier {
		f = graph.MulScalar(s.Param(freqs), 2*math.Pi)
	} else {
		f = nn.Constants(t, nn.Frequencies(e.channels/2, e.song))
	}
	sin, cos := nn.Waves(t, f)
	if e.song {
		return graph.Concatenate([]*graph.Node{sin, cos}, 1)
	}
	return graph.Concatenate([]*graph.Node{cos, sin}, 1)
}

func (e *embedder) apply(s *nn.Scope, noise, ratios, label, augment *graph.Node) *graph.Node {
	y := e.pos(s, noise)
	if e.song && e.label != nil {
		y = graph.Add(y, e.applyLabel(s, y, label, math.Sqrt(float64(e.label.In))))
	}
	if e.augment != nil && augment != nil {
		y = graph.Add(y, e.augment.Apply(s, augment))
	}
	for i, r := range e.ratios {
		rho := graph.ZerosLike(noise)
		if ratios != nil {
			rho = graph.Reshape(graph.SliceAxis(ratios, 1, graph.AxisElem(i)), -1)
		}
		y = graph.Add(y, r.Apply(s, e.pos(s, rho)))
	}
	y = nn.SiLU(e.layer0.Apply(s, y))
	y = e.layer1.Apply(s, y)
	if !e.song && e.label != nil {
		y = graph.Add(y, e.applyLabel(s, y, label, 1))
	}
	return nn.SiLU(y)
}

// applyLabel maps label [B, L] · scale; nil stands for zeros, one row of which serves the batch.
func (e *embedder) applyLabel(s *nn.Scope, like, label *graph.Node, scale float64) *graph.Node {
	if label == nil {
		d := like.Shape().Clone()
		d.Dimensions = []int{1, e.label.In}
		return e.label.Apply(s, graph.Zeros(like.Graph(), d))
	}
	label = nn.DropRows(s, label, e.labelDropout)
	return e.label.Apply(s, graph.MulScalar(label, scale))
}
