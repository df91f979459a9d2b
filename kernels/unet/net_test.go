package unet_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// families are the fixtures' networks.
var families = []string{"ddpmpp", "ncsnpp", "adm"}

func build(t *testing.T, c unet.Config) *unet.Net {
	t.Helper()
	n, err := unet.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestStateDict compares names, shapes and their order with EDM's state dicts.
func TestStateDict(t *testing.T) {
	for _, name := range families {
		c := fixtures.Load(t, "networks/"+name)
		net := fixtureNet(t, c)
		var want map[string][]int
		c.JSON("parameters", &want)
		state := net.State(net.Init(1))
		if len(state) != len(want) {
			t.Errorf("%s: %d tensors, want %d", name, len(state), len(want))
		}
		for _, s := range state {
			if !slices.Equal(s.Shape, want[s.Name]) {
				t.Errorf("%s: %s has shape %v, want %v", name, s.Name, s.Shape, want[s.Name])
			}
		}
		var count int
		c.JSON("parameter_count", &count)
		if got := net.ParamCount(); got != count {
			t.Errorf("%s: %d parameters, want %d", name, got, count)
		}
		var order, trained []string
		c.JSON("param_names", &order)
		for _, p := range net.Params() {
			if !p.Frozen {
				trained = append(trained, p.Name)
			}
		}
		if !slices.Equal(trained, order) {
			t.Errorf("%s: order of parameters differs from EDM's", name)
		}
	}
}

// TestInit compares every tensor of a middling network with the distribution EDM draws it from: exactly zero or one
// where that is constant; else the bounds, mean and variance, within five standard errors.
func TestInit(t *testing.T) {
	song := unet.Defaults(unet.SongUNet)
	song.ImgResolution, song.ImgChannels, song.LabelDim, song.AugmentDim = kernels.Square(16), 3, 10, 9
	song.ModelChannels, song.ChannelMult, song.NumBlocks, song.AttnResolutions = 32, []int{1, 2}, 1, []int{8}
	song.EmbeddingType = "fourier"
	adm := unet.Defaults(unet.DhariwalUNet)
	adm.ImgResolution, adm.ImgChannels, adm.LabelDim, adm.AugmentDim = kernels.Square(8), 3, 10, 9
	adm.ModelChannels, adm.ChannelMult, adm.NumBlocks, adm.AttnResolutions = 64, []int{1}, 1, []int{8}
	for _, cfg := range []unet.Config{song, adm} {
		net := build(t, cfg)
		params, values := net.Params(), net.Init(3)
		for i, p := range params {
			want := initially(cfg, p, params)
			checkDistribution(t, cfg.ModelType+" "+p.Name, values[i], want)
		}
		if !slices.EqualFunc(values, net.Init(3), slices.Equal[[]float32]) {
			t.Errorf("%s: Init is not a function of its seed", cfg.ModelType)
		}
		if slices.EqualFunc(values, net.Init(4), slices.Equal[[]float32]) {
			t.Errorf("%s: Init does not depend on its seed", cfg.ModelType)
		}
	}
}

// distribution is what is told of one: constants have a deviation of zero, uniform ones a bound.
type distribution struct{ mean, deviation, bound float64 }

func constant(v float64) distribution { return distribution{mean: v, bound: math.Abs(v)} }

func normal(deviation float64) distribution {
	return distribution{deviation: deviation, bound: math.Inf(1)}
}

func uniform(bound float64) distribution {
	return distribution{deviation: bound / math.Sqrt(3), bound: bound}
}

// initially restates EDM's choices, module by module.
func initially(cfg unet.Config, p nn.Param, all []nn.Param) distribution {
	dot := strings.LastIndex(p.Name, ".")
	module, tensor := p.Name[:dot], p.Name[dot+1:]
	is := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(module, s) })
	}
	switch {
	case tensor == "freqs":
		return normal(16)
	case is("norm0", "norm1", "norm2", "_norm") && tensor == "weight":
		return constant(1)
	case is("norm0", "norm1", "norm2", "_norm"):
		return constant(0)
	}
	weight := p.Shape // the weight's, for a bias too
	for _, q := range all {
		if q.Name == module+".weight" {
			weight = q.Shape
		}
	}
	area := 1
	if len(weight) == 4 {
		area = weight[2] * weight[3]
	}
	in, out := float64(weight[1]*area), float64(weight[0]*area)
	last := is(".conv1", ".proj", "_aux_conv", ".out_conv")
	if cfg.ModelType == unet.SongUNet {
		bound := math.Sqrt(6 / (in + out))
		switch {
		case tensor == "bias":
			return constant(0)
		case last:
			return uniform(1e-5 * bound)
		case is(".qkv"):
			return uniform(math.Sqrt(0.2) * bound)
		}
		return uniform(bound)
	}
	switch {
	case last || is("map_augment"):
		return constant(0)
	case is("map_label"):
		return normal(math.Sqrt(float64(cfg.LabelDim)) / math.Sqrt(in))
	}
	return uniform(math.Sqrt(1/3.) * math.Sqrt(3/in))
}

func checkDistribution(t *testing.T, name string, v []float32, want distribution) {
	t.Helper()
	x := fixtures.Widen(v)
	n := float64(len(x))
	mean, variance := stat.PopMeanVariance(x, nil)
	if math.Abs(mean-want.mean) > 5*want.deviation/math.Sqrt(n) {
		t.Errorf("%s: mean %v, want %v", name, mean, want.mean)
	}
	sigma2 := want.deviation * want.deviation
	if math.Abs(variance-sigma2) > 5*sigma2*math.Sqrt(2/n)+sigma2/n {
		t.Errorf("%s: variance %v, want %v", name, variance, sigma2)
	}
	if largest := max(slices.Max(x), -slices.Min(x)); largest > want.bound*(1+1e-6) {
		t.Errorf("%s: largest of %v is %v, bound %v", name, n, largest, want.bound)
	}
}
