package unet_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// TestFLOPsOfPublishedNetworks compares with PyTorch 2.15's FlopCounterMode on an
// independent implementation of EDM's networks, and with the parameters that
// implementation has.
func TestFLOPsOfPublishedNetworks(t *testing.T) {
	for _, c := range []struct {
		name          string
		config        string
		flops, params int64
	}{
		{
			"CIFAR-10, DDPM++, conditional",
			`{"model_type":"SongUNet","img_resolution":32,"img_channels":3,"label_dim":10,"channel_mult":[2,2,2]}`, 42380429824,
			55734147,
		},
		{
			"CIFAR-10, DDPM++, unconditional",
			`{"model_type":"SongUNet","img_resolution":32,"img_channels":3,"label_dim":0,"channel_mult":[2,2,2]}`, 42380427264,
			55732739,
		},
		{"FFHQ 64, DDPM++", `{"model_type":"SongUNet","img_resolution":64,"img_channels":3,"label_dim":0,` +
			`"channel_mult":[1,2,2,2]}`, 83722895360, 61804419},
		{
			"ImageNet-64, ADM", `{"model_type":"DhariwalUNet","img_resolution":64,"img_channels":3,"label_dim":1000}`,
			219315105792, 295899267,
		},
	} {
		net := build(t, parse(t, c.config))
		if net.FLOPs() != c.flops || int64(net.ParamCount()) != c.params {
			t.Errorf("%s: %d operations and %d parameters, want %d and %d", c.name, net.FLOPs(), net.ParamCount(), c.flops,
				c.params)
		}
	}
}

// TestFLOPsAreTheGraphs: the formula agrees with a count over the graph that Apply
// draws, whatever the form of the network.
func TestFLOPsAreTheGraphs(t *testing.T) {
	dev := devicetest.PureGo(t)
	const small = `"img_resolution":16,"img_channels":3,"model_channels":16,"channel_mult":[1,2],"attn_resolutions":[8]`
	for _, c := range []struct{ name, config string }{
		{"DDPM++", `{"model_type":"SongUNet",` + small + `,"label_dim":0,"num_blocks":2}`},
		{"DDPM++ with classes and ratios", `{"model_type":"SongUNet",` + small +
			`,"label_dim":10,"num_blocks":1,"ratio_embedding":2}`},
		{"NCSN++", `{"model_type":"SongUNet",` + small +
			`,"label_dim":10,"num_blocks":1,"embedding_type":"fourier","channel_mult_noise":2,"encoder_type":"residual",` +
			`"resample_filter":[1,3,3,1]}`},
		{"not square", `{"model_type":"SongUNet","img_resolution":[8,12],"img_channels":2,"model_channels":8,` +
			`"channel_mult":[1,2],"attn_resolutions":[4],"label_dim":0,"num_blocks":1,"encoder_type":"residual",` +
			`"resample_filter":[1,3,3,1]}`},
		{"skips", `{"model_type":"SongUNet",` + small +
			`,"label_dim":0,"num_blocks":1,"encoder_type":"skip","decoder_type":"skip"}`},
		{"ADM", `{"model_type":"DhariwalUNet","img_resolution":16,"img_channels":3,"model_channels":64,"channel_mult":[1,` +
			`2],"attn_resolutions":[8],"label_dim":5,"num_blocks":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			net := build(t, parse(t, c.config))
			cfg := net.Config()
			for _, batch := range []int{1, 3} {
				f32 := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }
				cost, err := dev.Cost(fmt.Sprint("apply ", batch), func(g *graph.Graph) []*node {
					var params []*node
					for _, p := range net.Params() {
						params = append(params, graph.Parameter(g, p.Name, f32(p.DeviceShape()...)))
					}
					x := graph.Parameter(g, "x", f32(batch, cfg.ImgResolution.Height, cfg.ImgResolution.Width, cfg.ImgChannels))
					noise := graph.Parameter(g, "noise", f32(batch))
					var label *node
					if cfg.LabelDim > 0 {
						label = graph.Parameter(g, "label", f32(batch, cfg.LabelDim))
					}
					return []*node{net.Apply(nn.NewScope(net.Params(), params), x, noise, nil, label, nil)}
				})
				if err != nil {
					t.Fatal(err)
				}
				if want := int64(batch) * net.FLOPs(); cost.FLOPs != want {
					t.Errorf("the graph of %d images has %d operations, the formula %d", batch, cost.FLOPs, want)
				}
			}
		})
	}
}

func parse(t *testing.T, config string) unet.Config {
	t.Helper()
	cfg, err := unet.ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
