package modelbench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Builtin is a network that is measured by a name, and the batch that goes with it.
type Builtin struct {
	Name   string
	Batch  int
	Config string // JSON of a config.json
}

// Builtins are two networks of a size for processors, and EDM's for CIFAR-10 (class-conditional DDPM++).
var Builtins = []Builtin{
	{"8x8", 64, `{"model_type":"SongUNet","img_resolution":8,"img_channels":3,"label_dim":10,"model_channels":32,` +
		`"channel_mult":[1,2],"num_blocks":2,"attn_resolutions":[4],"dropout":0}`},
	{"32x32", 8, `{"model_type":"SongUNet","img_resolution":32,"img_channels":3,"label_dim":10,"model_channels":64,` +
		`"channel_mult":[1,2,2],"num_blocks":2,"attn_resolutions":[16],"dropout":0}`},
	{"cifar10", 64, `{"model_type":"SongUNet","img_resolution":32,"img_channels":3,"label_dim":10,"model_channels":128,` +
		`"channel_mult":[2,2,2],"num_blocks":4,"attn_resolutions":[16],"dropout":0.13,"augment_dim":9}`},
}

// BuiltinNamed returns the network of that name.
func BuiltinNamed(name string) (Builtin, error) {
	var names []string
	for _, b := range Builtins {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return Builtin{}, fmt.Errorf("there is no network %q; choose %s", name, strings.Join(names, ", "))
}

// Random returns a model with values drawn from the seed. EDM's initial values make most
// branches of a network vanish; these do not: weights are normal with variance 1/fan-in,
// scales of norms 1 and biases 0 with a deviation of 0.1, so that every layer shows in the
// output and its derivatives.
func Random(cfg unet.Config, seed uint64) (*checkpoint.Model, error) {
	net, err := unet.New(cfg)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	m := &checkpoint.Model{Net: net}
	for _, p := range net.Params() {
		mean, deviation := 0.0, 0.1
		if len(p.Shape) > 1 {
			deviation = 1 / math.Sqrt(float64(p.Size()/p.Shape[0]))
		} else if strings.Contains(p.Name, "norm") && strings.HasSuffix(p.Name, ".weight") {
			mean = 1
		}
		values := make([]float32, p.Size())
		for i := range values {
			values[i] = float32(mean + deviation*rng.NormFloat64())
		}
		m.Values = append(m.Values, values)
	}
	return m, nil
}
