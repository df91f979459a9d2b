package unet_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// conditions are the inputs of a network beside the image; nil ones are left out.
type conditions struct {
	ratios, label, augment []float32
	rng                    []uint64 // training, from this random state
}

// apply runs a network on a fixed batch of two images in float32.
func apply(t *testing.T, dev *device.Device, net *unet.Net, values [][]float32, c conditions) []float64 {
	t.Helper()
	const batch = 2
	cfg := net.Config()
	var inputs []devicetest.Input
	add := func(v any, dims ...int) { inputs = append(inputs, devicetest.Input{Flat: v, Dims: dims}) }
	params := net.Params()
	for i, p := range params {
		add(p.ToDevice(values[i]), p.DeviceShape()...)
	}
	size := cfg.ImgResolution
	add(gaussian(rand.New(rand.NewPCG(1, 2)), batch*size.Height*size.Width*cfg.ImgChannels),
		batch, size.Height, size.Width, cfg.ImgChannels)
	add([]float32{-0.7, 0.4}, batch)
	for _, v := range [][]float32{c.ratios, c.label, c.augment} {
		if v != nil {
			add(v, batch, len(v)/batch)
		}
	}
	if c.rng != nil {
		add(c.rng, len(c.rng))
	}
	key := fmt.Sprint("apply ", cfg, len(c.ratios), len(c.label), len(c.augment), len(c.rng))
	return devicetest.Compute(t, dev, key, func(in []*node) []*node {
		scope := nn.NewScope(params, in[:len(params)])
		in = in[len(params):]
		next := func(given bool) (x *node) {
			if given {
				x, in = in[0], in[1:]
			}
			return x
		}
		x, noise := next(true), next(true)
		ratios, label, augment := next(c.ratios != nil), next(c.label != nil), next(c.augment != nil)
		scope.RNG = next(c.rng != nil)
		return []*node{net.Apply(scope, x, noise, ratios, label, augment)}
	}, inputs...)[0]
}

func gaussian(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// lively returns values under which every part of a network matters: EDM starts the last layer of each branch near
// zero.
func lively(net *unet.Net) [][]float32 {
	var out [][]float32
	for i, p := range net.Params() {
		scale := 0.5
		if len(p.Shape) > 1 {
			scale = 1 / math.Sqrt(float64(p.Size()/p.Shape[0]))
		}
		v := gaussian(rand.New(rand.NewPCG(8, uint64(i))), p.Size())
		for k := range v {
			v[k] *= float32(scale)
		}
		out = append(out, v)
	}
	return out
}

func index(t *testing.T, net *unet.Net, name string) int {
	t.Helper()
	i := slices.IndexFunc(net.Params(), func(p nn.Param) bool { return strings.HasSuffix(p.Name, name) })
	if i < 0 {
		t.Fatalf("no parameter %s", name)
	}
	return i
}

func distance(a, b []float64) float64 {
	d := 0.
	for i := range a {
		d = max(d, math.Abs(a[i]-b[i]))
	}
	return d
}

// TestZeroRatioEmbeddingChangesNothing: a checkpoint that knows nothing of ratios gives the same bytes in a network
// that takes them, for any ratios.
func TestZeroRatioEmbeddingChangesNothing(t *testing.T) {
	dev := devicetest.Fast(t)
	plain := build(t, small())
	cfg := small()
	cfg.RatioEmbedding = 2
	with := build(t, cfg)
	values := lively(plain)
	loaded, err := with.Load(plain.State(values))
	if err != nil {
		t.Fatal(err)
	}
	label := []float32{0, 1, 0, 0, 0, 1}
	want := apply(t, dev, plain, values, conditions{label: label})
	got := apply(t, dev, with, loaded, conditions{label: label, ratios: []float32{0.3, -2, 1, 0.2}})
	if !slices.Equal(got, want) {
		t.Errorf("outputs differ by %v", distance(got, want))
	}
}

// TestRatioEmbedding: W pos(ρ) joins the embedding where the augmentation's does. So a network whose augmentation layer
// holds W₀ pos(ρ₀) + W₁ pos(ρ₁) as its first column, and whose first augmentation label is one, computes the same. W is
// applied here by hand: pos(ρ) = [sin ρf, cos ρf], f = (1, 10⁻⁴ᐟ³, ...).
func TestRatioEmbedding(t *testing.T) {
	dev := devicetest.PureGo(t)
	cfg := small()
	cfg.RatioEmbedding = 2
	with, plain := build(t, cfg), build(t, small())
	values := lively(with)
	rho := []float64{0.7, -1.3}
	n := cfg.ModelChannels
	column := make([]float64, n)
	for i, r := range rho {
		w := values[index(t, with, []string{"map_ratio0.weight", "map_ratio1.weight"}[i])]
		for o := range n {
			for k := range n / 2 {
				f := math.Pow(10000, -float64(k)/float64(n/2-1))
				column[o] += float64(w[o*n+k])*math.Sin(r*f) + float64(w[o*n+n/2+k])*math.Cos(r*f)
			}
		}
	}
	var rest [][]float32
	for i, p := range with.Params() {
		if !p.Optional {
			rest = append(rest, slices.Clone(values[i]))
		}
	}
	augment := rest[index(t, plain, "map_augment.weight")]
	for o := range n {
		augment[o*2] = float32(column[o])
	}
	got := apply(t, dev, with, values, conditions{ratios: []float32{0.7, -1.3, 0.7, -1.3}})
	want := apply(t, dev, plain, rest, conditions{augment: []float32{1, 0, 1, 0}})
	if d := distance(got, want); d > 2e-5 {
		t.Errorf("outputs differ by %v", d)
	}
	if d := distance(got, apply(t, dev, with, values, conditions{})); d < 1e-2 {
		t.Errorf("ratios have no effect: %v", d)
	}
	zeros := apply(t, dev, with, values, conditions{ratios: make([]float32, 4)})
	if none := apply(t, dev, with, values, conditions{}); !slices.Equal(none, zeros) {
		t.Error("absent ratios are not zeros")
	}
}

func TestDropoutInTraining(t *testing.T) {
	dev := devicetest.PureGo(t)
	net := build(t, small())
	values := lively(net)
	rng, other := []uint64{1, 2, 3}, []uint64{4, 5, 6}
	still := apply(t, dev, net, values, conditions{})
	a := apply(t, dev, net, values, conditions{rng: rng})
	if !slices.Equal(a, apply(t, dev, net, values, conditions{rng: rng})) {
		t.Error("one random state gives two outputs")
	}
	if distance(a, still) == 0 || distance(a, apply(t, dev, net, values, conditions{rng: other})) == 0 {
		t.Error("dropout has no effect, or does not depend on the random state")
	}
	cfg := small()
	cfg.Dropout = 0
	if got := apply(t, dev, build(t, cfg), values, conditions{rng: rng}); !slices.Equal(got, still) {
		t.Error("training without dropout differs from evaluation")
	}
}

func TestLabelDropoutInTraining(t *testing.T) {
	dev := devicetest.PureGo(t)
	for _, family := range []string{unet.SongUNet, unet.DhariwalUNet} {
		cfg := small()
		if family == unet.DhariwalUNet {
			cfg = unet.Defaults(family)
			cfg.ImgResolution, cfg.ImgChannels, cfg.LabelDim = kernels.Square(4), 2, 3
			cfg.ModelChannels, cfg.ChannelMult, cfg.NumBlocks = 8, []int{1, 2}, 1
		}
		cfg.Dropout, cfg.LabelDropout = 0, 1
		net := build(t, cfg)
		values := lively(net)
		label := []float32{0, 1, 0, 0, 0, 1}
		none := apply(t, dev, net, values, conditions{})
		if got := apply(t, dev, net, values, conditions{label: label, rng: []uint64{1, 2, 3}}); !slices.Equal(got, none) {
			t.Errorf("%s: dropping every label leaves %v", family, distance(got, none))
		}
		if got := apply(t, dev, net, values, conditions{label: label}); slices.Equal(got, none) {
			t.Errorf("%s: labels are dropped outside training", family)
		}
	}
}
