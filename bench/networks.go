package bench

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/spf13/pflag"
)

// builtin is a network that is measured by a name, and the batch that goes with it.
type builtin struct {
	name   string
	batch  int
	config string // JSON of a config.json
}

// builtins are the network of configs/digits-pretrain.yaml, two for processors, and EDM's for CIFAR-10
// (class-conditional DDPM++), FFHQ (DDPM++) and ImageNet at 64×64 (ADM).
var builtins = []builtin{
	{"digits", 64, `{"model_type":"SongUNet","img_resolution":8,"img_channels":1,"label_dim":10,"model_channels":16,` +
		`"channel_mult":[1,2],"num_blocks":1,"attn_resolutions":[4],"dropout":0}`},
	{"8x8", 64, `{"model_type":"SongUNet","img_resolution":8,"img_channels":3,"label_dim":10,"model_channels":32,` +
		`"channel_mult":[1,2],"num_blocks":2,"attn_resolutions":[4],"dropout":0}`},
	{"32x32", 8, `{"model_type":"SongUNet","img_resolution":32,"img_channels":3,"label_dim":10,"model_channels":64,` +
		`"channel_mult":[1,2,2],"num_blocks":2,"attn_resolutions":[16],"dropout":0}`},
	{"cifar10", 64, `{"model_type":"SongUNet","img_resolution":32,"img_channels":3,"label_dim":10,"model_channels":128,` +
		`"channel_mult":[2,2,2],"num_blocks":4,"attn_resolutions":[16],"dropout":0.13,"augment_dim":9}`},
	{"ffhq", 32, `{"model_type":"SongUNet","img_resolution":64,"img_channels":3,"label_dim":0,"model_channels":128,` +
		`"channel_mult":[1,2,2,2],"num_blocks":4,"attn_resolutions":[16],"dropout":0.05,"augment_dim":9}`},
	{"imagenet64", 32, `{"model_type":"DhariwalUNet","img_resolution":64,"img_channels":3,"label_dim":1000,` +
		`"model_channels":192,"channel_mult":[1,2,3,4],"num_blocks":3,"attn_resolutions":[32,16,8],"dropout":0.1}`},
}

// builtinNamed returns the network of that name, or of that JSON, whose batch is 64.
func builtinNamed(name string) (builtin, error) {
	if strings.HasPrefix(name, "{") {
		return builtin{batch: 64, config: name}, nil
	}
	var names []string
	for _, b := range builtins {
		if b.name == name {
			return b, nil
		}
		names = append(names, b.name)
	}
	return builtin{}, fmt.Errorf("network must be %s or JSON of a config.json, got %q", strings.Join(names, ", "), name)
}

// randomModel returns a model with values drawn from the seed. EDM's initial values make most branches of a network
// vanish; these do not: weights are normal with variance 1/fan-in, scales of norms 1 and biases 0 with a deviation of
// 0.1, so that every layer shows in the output and its derivatives.
func randomModel(config string, seed uint64) (*checkpoint.Model, error) {
	net, err := unet.Parse([]byte(config))
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

// modelFlags name the network that is measured, the arithmetic and the device.
type modelFlags struct {
	network, folder, precision string
	batch                      int
	device                     device.Config
}

func (m *modelFlags) register(f *pflag.FlagSet, network string) {
	f.StringVar(&m.network, "network", network,
		"`name` of a built-in network (digits, 8x8, 32x32, cifar10, ffhq or imagenet64), or JSON of a config.json")
	f.StringVar(&m.folder, "model", "", "`folder` of a model, instead of --network")
	positiveFlag(f, &m.batch, "batch", 0, "`images` per batch (default: the built-in network's own, else 64)")
	f.StringVar(&m.precision, "precision", string(kernels.Float32), "`arithmetic` of networks: float32, tf32 or bfloat16")
	f.StringVar(&m.device.Plugin, "device", "",
		"`backend`: cpu, cuda, go, or a PJRT plugin's path (default: the best one found)")
	f.Float64Var(&m.device.MemoryFraction, "memory-fraction", 0,
		"`share` of the GPU's memory that may be taken (default 0.75)")
}

// load reads the model, or makes it from a configuration, and sets the batch unless one was given.
func (m *modelFlags) load() (model *checkpoint.Model, err error) {
	batch := 64
	if m.folder != "" {
		model, err = checkpoint.LoadModel(m.folder)
	} else {
		var b builtin
		if b, err = builtinNamed(m.network); err != nil {
			return nil, err
		}
		model, err = randomModel(b.config, 1)
		batch = b.batch
	}
	if m.batch == 0 {
		m.batch = batch
	}
	return model, err
}

// withDevice hands the model and an open device to f and returns its report.
func (m *modelFlags) withDevice(
	f func(dev *device.Device, model *checkpoint.Model, at kernels.Precision) (report, error),
) (report, error) {
	model, err := m.load()
	if err != nil {
		return nil, err
	}
	at, err := kernels.ParsePrecision(m.precision)
	if err != nil {
		return nil, err
	}
	dev, err := device.Open(m.device)
	if err != nil {
		return nil, err
	}
	r, err := f(dev, model, at)
	return r, errors.Join(err, dev.Close())
}

// trainableNetwork is a network that learns and that the model preconditions.
type trainableNetwork interface {
	kernels.Trainable
	kernels.RawNetwork
}

// networkOf returns the model's network, which must be one that learns.
func networkOf(m *checkpoint.Model) (trainableNetwork, error) {
	net, ok := m.Net.(trainableNetwork)
	if !ok {
		return nil, fmt.Errorf("the network must be one that learns, got %s, which is exact", m.Net.Shape().Type)
	}
	return net, nil
}
