package unet_test

import (
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// TestFLOPsOfPublishedNetworks compares with PyTorch 2.15's FlopCounterMode on an independent implementation of EDM's
// networks, and with the parameters that implementation has.
func TestFLOPsOfPublishedNetworks(t *testing.T) {
	dev := devicetest.PureGo(t)
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
		{"FFHQ 64, DDPM++", `{"model_type":"SongUNet","img_resolution":64,"img_channels":3,"label_dim":0,` +
			`"channel_mult":[1,2,2,2]}`, 83722895360, 61804419},
		{
			"ImageNet-64, ADM", `{"model_type":"DhariwalUNet","img_resolution":64,"img_channels":3,"label_dim":1000}`,
			219315105792, 295899267,
		},
	} {
		net, err := unet.Parse([]byte(c.config))
		if err != nil {
			t.Fatal(err)
		}
		cost, err := dev.Cost(c.name, func(g *graph.Graph) []*node { return []*node{drawn(g, net)} })
		if err != nil || cost.FLOPs != c.flops || int64(net.ParamCount()) != c.params {
			t.Errorf("%s: %d operations and %d parameters, want %d and %d (error %v)", c.name, cost.FLOPs, net.ParamCount(),
				c.flops, c.params, err)
		}
	}
}

// drawn appends a network for one image.
func drawn(g *graph.Graph, net *unet.Net) *node {
	f32 := func(name string, dims ...int) *node {
		return graph.Parameter(g, name, shapes.Make(dtypes.Float32, dims...))
	}
	var params []*node
	for _, p := range net.Params() {
		params = append(params, f32(p.Name, p.DeviceShape()...))
	}
	cfg := net.Config()
	x := f32("x", 1, cfg.ImgResolution.Height, cfg.ImgResolution.Width, cfg.ImgChannels)
	var label *node
	if cfg.LabelDim > 0 {
		label = f32("label", 1, cfg.LabelDim)
	}
	return net.Raw(nn.NewScope(net.Params(), params), x, f32("noise", 1), nil, label)
}
