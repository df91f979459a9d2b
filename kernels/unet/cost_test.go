package unet_test

import (
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
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
		m, err := kernels.NewModel(dev, net, nil)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := m.EvaluateCost(1)
		if err != nil || cost.FLOPs != c.flops || int64(net.ParamCount()) != c.params {
			t.Errorf("%s: %d operations and %d parameters, want %d and %d (error %v)", c.name, cost.FLOPs, net.ParamCount(),
				c.flops, c.params, err)
		}
	}
}
