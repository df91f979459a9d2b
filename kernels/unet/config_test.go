package unet_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

func TestParseFillsInEDMsDefaults(t *testing.T) {
	net, err := unet.Parse([]byte(`{"model_type": "SongUNet", "img_resolution": 32, "img_channels": 3, ` +
		`"label_dim": 2, "classes": ["cat", "dog"]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := unet.Config{
		ModelType: "SongUNet", ImgResolution: kernels.Square(32), ImgChannels: 3, LabelDim: 2,
		SigmaMin: 0, SigmaMax: unet.Extended(math.Inf(1)), SigmaData: 0.5,
		ModelChannels: 128, ChannelMult: []int{1, 2, 2, 2}, ChannelMultEmb: 4, NumBlocks: 4,
		AttnResolutions: []int{16}, Dropout: 0.1, EmbeddingType: "positional", ChannelMultNoise: 1,
		EncoderType: "standard", DecoderType: "standard", ResampleFilter: []float64{1, 1},
		Classes: []string{"cat", "dog"},
	}
	if got := net.Config(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}

	// model_type has a default too.
	net, err = unet.Parse([]byte(`{"img_resolution": 64, "img_channels": 3, "use_fp16": true, "sigma_max": 80, ` +
		`"attn_resolutions": []}`))
	if err != nil {
		t.Fatal(err)
	}
	want = unet.Defaults("DhariwalUNet")
	want.ImgResolution, want.ImgChannels, want.UseFP16 = kernels.Square(64), 3, true
	want.SigmaMax, want.AttnResolutions = 80, []int{}
	if got := net.Config(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestParametrization: the section says how the network is used; with it come the noise levels it was trained on.
func TestParametrization(t *testing.T) {
	const head = `{"model_type": "SongUNet", "img_resolution": 8, "img_channels": 3, "model_channels": 4, ` +
		`"channel_mult": [1], "num_blocks": 1, "attn_resolutions": []`
	for _, c := range []struct {
		rest, kind string
		lo, hi     float64
	}{
		{`}`, "edm", 0, 0},
		{`, "sigma_min": 0.03, "sigma_max": 14.6}`, "edm", 0.03, 14.6},
		{`, "parametrization": {"kind": "ve"}}`, "ve", 0.02, 100},
		{`, "sigma_max": 80, "parametrization": {"kind": "ve"}}`, "ve", 0.02, 80},
		{`, "parametrization": {"kind": "v", "alphas_cumprod": [0.5, 0.1]}}`, "v", 1, 3},
	} {
		net, err := unet.Parse([]byte(head + c.rest))
		if err != nil {
			t.Fatalf("%s: %v", c.rest, err)
		}
		s := net.Shape()
		if s.Parametrization != c.kind || math.Abs(s.Range.Min-c.lo) > 1e-12 || math.Abs(s.Range.Max-c.hi) > 1e-12 {
			t.Errorf("%s: %s, %v", c.rest, s.Parametrization, s.Range)
		}
		text, err := json.Marshal(net)
		if err != nil {
			t.Fatal(err)
		}
		again, err := unet.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again.Spec().Key != net.Spec().Key {
			t.Errorf("%s: another network after JSON: %s", c.rest, text)
		}
	}
	for rest, want := range map[string]string{
		`, "parametrization": {"kind": "eps"}}`:                  "epsilon",
		`, "parametrization": {"kind": "edm", "sigma_data": 1}}`: "sigma_data",
		`, "sigma_min": 200, "parametrization": {"kind": "ve"}}`: "no noise level",
	} {
		var config *nn.ConfigError
		if _, err := unet.Parse([]byte(head + rest)); !errors.As(err, &config) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rest, err, want)
		}
	}
}

func TestConfigSurvivesJSON(t *testing.T) {
	for _, c := range []unet.Config{cifar(10), small()} {
		c.AttnResolutions = nil // no attention must not turn into the default
		b, err := json.Marshal(build(t, c))
		if err != nil {
			t.Fatal(err)
		}
		net, err := unet.Parse(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		got := net.Config()
		got.AttnResolutions = nil
		if !reflect.DeepEqual(got, c) || !strings.Contains(string(b), `"attn_resolutions":[]`) {
			t.Errorf("%s: got %+v\nwant %+v", b, got, c)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	song := func(field string) string {
		return `{"model_type": "SongUNet", "img_resolution": 16, "img_channels": 3` + field + `}`
	}
	for _, c := range []struct{ name, json, field, says string }{
		{"nothing", ``, "", "one JSON object"},
		{"a list", `[]`, "", "one JSON object"},
		{"half an object", `{"model_type": "SongUNet"`, "", "one JSON object"},
		{"bare infinity", song(`, "sigma_max": Infinity`), "", `"inf"`},
		{"text after it", song(``) + `{}`, "", "after top-level value"},
		{
			"unknown field", song(`, "num_block": 2`), "num_block",
			`unknown field; did you mean "num_blocks"? docs/checkpoints.md lists the fields`,
		},
		{"a field twice", song(`, "dropout": 0, "dropout": 0.1`), "dropout", "twice"},
		{"wrong type", song(`, "num_blocks": "2"`), "num_blocks", "must be an integer"},
		{"fraction", song(`, "model_channels": 1.5`), "model_channels", "must be an integer"},
		{"wrong list", song(`, "channel_mult": 2`), "channel_mult", "must be a list, got number"},
		{"wrong size", `{"img_resolution": "32"}`, "img_resolution", "a number of pixels"},
		{"unknown model", `{"model_type": "UNet"}`, "model_type", "SongUNet"},
		{"no size", `{"model_type": "SongUNet", "img_channels": 3}`, "img_resolution", "got 0"},
		{"odd size", song(`, "channel_mult": [1, 1, 1, 1, 1, 1]`), "img_resolution", "multiple of 32"},
		{"no levels", song(`, "channel_mult": []`), "channel_mult", "per level"},
		{"zero multiplier", song(`, "channel_mult": [0]`), "channel_mult", "got 0"},
		{"odd channels", song(`, "model_channels": 33`), "model_channels", "even"},
		{"groups that do not divide", song(`, "model_channels": 132`), "model_channels", "groups"},
		{"far too large", song(`, "model_channels": 65536, "channel_mult": [256]`), "model_channels", "smaller"},
		{"negative classes", song(`, "label_dim": -1`), "label_dim", "got -1"},
		{"names without classes", song(`, "classes": ["cat"]`), "classes", "label_dim"},
		{"one name twice", song(`, "label_dim": 2, "classes": ["cat", "cat"]`), "classes", "distinct"},
		{"dropout of everything", song(`, "dropout": 1`), "dropout", "[0, 1)"},
		{"label dropout above one", song(`, "label_dropout": 1.5`), "label_dropout", "[0, 1]"},
		{"sigma_data", song(`, "sigma_data": 0`), "sigma_data", "positive"},
		{"sigma_min", song(`, "sigma_min": "inf"`), "sigma_min", "from 0"},
		{"sigma_max", song(`, "sigma_min": 2, "sigma_max": 1`), "sigma_max", "above sigma_min"},
		{"embedding", song(`, "embedding_type": "zero"`), "embedding_type", "positional or fourier"},
		{"encoder", song(`, "encoder_type": "none"`), "encoder_type", "residual"},
		{"decoder", song(`, "decoder_type": "residual"`), "decoder_type", "must be standard"},
		{"odd filter", song(`, "resample_filter": [1, 2, 1]`), "resample_filter", "even"},
		{"empty filter", song(`, "resample_filter": []`), "resample_filter", "even"},
		{"filter without mean", song(`, "resample_filter": [1, -1]`), "resample_filter", "nonzero sum"},
		{"attention at zero", song(`, "attn_resolutions": [0]`), "attn_resolutions", "got 0"},
		{"ratios", song(`, "ratio_embedding": -1`), "ratio_embedding", "got -1"},
		{
			"SongUNet's arguments elsewhere", `{"img_resolution": 64, "img_channels": 3, "encoder_type": "standard"}`,
			"encoder_type", "DhariwalUNet",
		},
		{
			"heads that do not divide",
			`{"img_resolution": 8, "img_channels": 3, "model_channels": 224, "channel_mult": [1], "attn_resolutions": [8]}`,
			"model_channels", "heads",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := unet.Parse([]byte(c.json))
			var ce *nn.ConfigError
			if !errors.As(err, &ce) {
				t.Fatalf("got %v, want a *ConfigError", err)
			}
			if ce.Field != c.field || !strings.Contains(ce.Error(), c.says) || !strings.Contains(ce.Error(), c.field) {
				t.Errorf("got field %q: %v\nwant field %q and %q", ce.Field, ce, c.field, c.says)
			}
		})
	}
}

// FuzzParse: whatever the text, an error or a network, never a panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"model_type": "SongUNet", "img_resolution": 16, "img_channels": 3, "num_blocks": 1, "channel_mult": ` +
		`[1]}`))
	f.Add([]byte(`{"img_resolution": 8, "img_channels": 1, "model_channels": 64, "sigma_max": "inf"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if net, err := unet.Parse(data); err == nil {
			if _, err := json.Marshal(net); err != nil {
				t.Errorf("parsed but not written: %v", err)
			}
		}
	})
}

// cifar is EDM's published network for CIFAR-10: DDPM++.
func cifar(labels int) unet.Config {
	c := unet.Defaults(unet.SongUNet)
	c.ImgResolution, c.ImgChannels, c.LabelDim, c.AugmentDim = kernels.Square(32), 3, labels, 9
	c.ChannelMult, c.Dropout = []int{2, 2, 2}, 0.13
	return c
}

// small is a DDPM++ network of a few thousand parameters.
func small() unet.Config {
	c := unet.Defaults(unet.SongUNet)
	c.ImgResolution, c.ImgChannels, c.LabelDim, c.AugmentDim = kernels.Square(4), 2, 3, 2
	c.ModelChannels, c.ChannelMult, c.NumBlocks, c.AttnResolutions = 8, []int{1, 2}, 1, []int{2}
	return c
}
