package unet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
)

// ParseConfig decodes a config.json: one JSON object with the fields of
// [Config], EDM's defaults where a field is absent (model_type too:
// DhariwalUNet). It is strict: unknown, repeated and null fields, fields of the
// wrong type and trailing text are a *[nn.ConfigError]. The result has passed
// [Config.Validate].
func ParseConfig(data []byte) (Config, error) {
	keys, values, err := object(data)
	if err != nil {
		return Config{}, err
	}
	modelType := DhariwalUNet
	if i := slices.Index(keys, "model_type"); i >= 0 {
		if err := read("model_type", values[i], &modelType); err != nil {
			return Config{}, err
		}
	}
	c := Defaults(modelType)
	if err := c.checkType(); err != nil {
		return Config{}, err
	}
	targets := c.targets()
	for i, key := range keys {
		target, ok := targets[key]
		if !ok {
			return Config{}, unknown(key, modelType)
		}
		if err := read(key, values[i], target); err != nil {
			return Config{}, err
		}
	}
	if err := c.Validate(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// targets maps the names of the fields the model type takes to where they go.
func (c *Config) targets() map[string]any {
	t := map[string]any{
		"model_type": &c.ModelType, "img_resolution": &c.ImgResolution, "img_channels": &c.ImgChannels,
		"label_dim": &c.LabelDim, "use_fp16": &c.UseFP16, "sigma_min": &c.SigmaMin, "sigma_max": &c.SigmaMax,
		"sigma_data": &c.SigmaData, "augment_dim": &c.AugmentDim, "model_channels": &c.ModelChannels,
		"channel_mult": &c.ChannelMult, "channel_mult_emb": &c.ChannelMultEmb, "num_blocks": &c.NumBlocks,
		"attn_resolutions": &c.AttnResolutions, "dropout": &c.Dropout, "label_dropout": &c.LabelDropout,
		"classes": &c.Classes, "ratio_embedding": &c.RatioEmbedding, parametrization.Section: &c.Parametrization,
		"normalization": &c.Normalization,
	}
	if c.ModelType == SongUNet {
		t["embedding_type"], t["channel_mult_noise"] = &c.EmbeddingType, &c.ChannelMultNoise
		t["encoder_type"], t["decoder_type"] = &c.EncoderType, &c.DecoderType
		t["resample_filter"] = &c.ResampleFilter
	}
	return t
}

func unknown(key, modelType string) error {
	if _, ok := (&Config{ModelType: SongUNet}).targets()[key]; ok {
		return &nn.ConfigError{Field: key, Reason: "is no argument of " + modelType + "; remove it, or set model_type to " +
			SongUNet}
	}
	var names []string
	for name := range (&Config{ModelType: modelType}).targets() {
		names = append(names, name)
	}
	slices.Sort(names)
	reason := "unknown field; "
	if ask := suggest.DidYouMean(key, names); ask != "" {
		reason += ask + " "
	}
	return &nn.ConfigError{Field: key, Reason: reason + "docs/checkpoints.md lists the fields"}
}

// object splits a JSON object into its fields.
func object(data []byte) (keys []string, values []json.RawMessage, err error) {
	bad := func(err error) error {
		return nn.ConfigErrorf("", "must be one JSON object (write infinity as \"inf\"): %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if tok, err := dec.Token(); err != nil {
		return nil, nil, bad(err)
	} else if tok != json.Delim('{') {
		return nil, nil, bad(fmt.Errorf("it begins with %v", tok))
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, nil, bad(err)
		}
		key, _ := tok.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, bad(err)
		}
		if slices.Contains(keys, key) {
			return nil, nil, nn.ConfigErrorf(key, "is given twice; keep one")
		}
		keys, values = append(keys, key), append(values, value)
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, bad(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, bad(errors.New("there is text after it"))
	}
	return keys, values, nil
}

func read(key string, raw json.RawMessage, target any) error {
	if string(raw) == "null" {
		return nn.ConfigErrorf(key, "is null; give a value, or remove the field for its default")
	}
	if err := json.Unmarshal(raw, target); err != nil {
		var config *nn.ConfigError
		if errors.As(err, &config) {
			return config
		}
		return nn.ConfigErrorf(key, "must be %s, got %s", wanted(target), clip(raw))
	}
	return nil
}

func wanted(target any) string {
	switch target.(type) {
	case *string:
		return "a string"
	case *bool:
		return "true or false"
	case *int:
		return "an integer"
	case *float64:
		return "a number"
	case *Extended:
		return `a number or "inf"`
	case *[]int:
		return "a list of integers"
	case *[]float64:
		return "a list of numbers"
	case *[]string:
		return "a list of strings"
	case *kernels.Resolution:
		return "a number of pixels, or [height, width]"
	case **normalization.Affine:
		return `{"mean": […], "scale": […]}, a number for each channel`
	}
	panic(fmt.Sprintf("unet: no words for %T", target))
}

func clip(raw []byte) string {
	if len(raw) > 40 {
		return string(raw[:40]) + "…"
	}
	return string(raw)
}
