package unet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
)

// Bounds on what a configuration may ask for, far above any published network
// and far below what would exhaust a machine before an error could be given.
const (
	maxSize   = 1 << 16 // sizes and counts
	maxBlocks = 1 << 8  // blocks per level, multipliers, filter taps
	maxParams = 1 << 32
)

// Validate returns a *[nn.ConfigError] for the first field that no network can be
// built from.
func (c Config) Validate() error {
	_, err := New(c)
	return err
}

// check looks at every field by itself.
func (c Config) check() error {
	if err := c.checkType(); err != nil {
		return err
	}
	for _, f := range []struct {
		name          string
		value, lo, hi int
	}{
		{"img_resolution", c.ImgResolution.Height, 1, maxSize},
		{"img_resolution", c.ImgResolution.Width, 1, maxSize},
		{"img_channels", c.ImgChannels, 1, maxSize},
		{"label_dim", c.LabelDim, 0, 1 << 20},
		{"augment_dim", c.AugmentDim, 0, maxSize},
		{"model_channels", c.ModelChannels, 4, maxSize},
		{"channel_mult_emb", c.ChannelMultEmb, 1, maxBlocks},
		{"num_blocks", c.NumBlocks, 1, maxBlocks},
		{"ratio_embedding", c.RatioEmbedding, 0, maxSize},
	} {
		if f.value < f.lo || f.value > f.hi {
			return &nn.ConfigError{Field: f.name, Reason: fmt.Sprintf("want an integer from %d to %d, got %d", f.lo, f.hi,
				f.value)}
		}
	}
	if n := len(c.ChannelMult); n < 1 || n > 16 {
		return &nn.ConfigError{
			Field:  "channel_mult",
			Reason: fmt.Sprintf("want one integer per level, 1 to 16 levels, got %d", n),
		}
	}
	for _, m := range c.ChannelMult {
		if m < 1 || m > maxBlocks {
			return &nn.ConfigError{Field: "channel_mult", Reason: fmt.Sprintf("want integers from 1 to %d, got %d", maxBlocks,
				m)}
		}
	}
	if step := 1 << (len(c.ChannelMult) - 1); c.ImgResolution.Height%step != 0 ||
		c.ImgResolution.Width%step != 0 {
		return &nn.ConfigError{Field: "img_resolution", Reason: fmt.Sprintf(
			"is halved %d times, so it must be a multiple of %d, got %v", len(c.ChannelMult)-1, step, c.ImgResolution)}
	}
	if err := c.Normalization.Fits(c.ImgChannels); err != nil {
		return &nn.ConfigError{Field: "normalization", Reason: err.Error()}
	}
	if c.ModelChannels%2 != 0 {
		return &nn.ConfigError{Field: "model_channels", Reason: fmt.Sprintf("must be even for the noise embedding, got %d",
			c.ModelChannels)}
	}
	for _, r := range c.AttnResolutions {
		if r < 1 {
			return &nn.ConfigError{Field: "attn_resolutions", Reason: fmt.Sprintf("want resolutions of at least 1, got %d", r)}
		}
	}
	if err := c.checkNumbers(); err != nil {
		return err
	}
	if err := c.checkClasses(); err != nil {
		return err
	}
	return c.checkSong()
}

func (c Config) checkType() error {
	if c.ModelType != SongUNet && c.ModelType != DhariwalUNet {
		return &nn.ConfigError{Field: "model_type", Reason: fmt.Sprintf("want %s or %s, got %q", SongUNet, DhariwalUNet,
			c.ModelType)}
	}
	return nil
}

func (c Config) checkNumbers() error {
	if !(c.SigmaData > 0) || math.IsInf(c.SigmaData, 0) {
		return &nn.ConfigError{Field: "sigma_data", Reason: fmt.Sprintf("want a positive number, got %v", c.SigmaData)}
	}
	if !(c.SigmaMin >= 0) || math.IsInf(float64(c.SigmaMin), 0) {
		return &nn.ConfigError{Field: "sigma_min", Reason: fmt.Sprintf("want a number from 0, got %v", float64(c.SigmaMin))}
	}
	if !(c.SigmaMax > c.SigmaMin) {
		return &nn.ConfigError{Field: "sigma_max", Reason: fmt.Sprintf("want a number above sigma_min, or \"inf\", got %v",
			float64(c.SigmaMax))}
	}
	if p := c.Parametrization; p != nil && p.Kind() == parametrization.EDM && p.SigmaData() != c.SigmaData {
		return &nn.ConfigError{Field: parametrization.Section + ".sigma_data", Reason: fmt.Sprintf(
			"must be the configuration's own sigma_data, %v, got %v; leave one of them out", c.SigmaData, p.SigmaData())}
	}
	if r := c.noiseLevels(); r.Empty() {
		return &nn.ConfigError{Field: "sigma_max", Reason: fmt.Sprintf(
			"no noise level lies within sigma_min, sigma_max and the parametrization's own; got %v … %v", r.Min, r.Max)}
	}
	if !(c.Dropout >= 0 && c.Dropout < 1) {
		return &nn.ConfigError{Field: "dropout", Reason: fmt.Sprintf("want a rate in [0, 1), got %v", c.Dropout)}
	}
	if !(c.LabelDropout >= 0 && c.LabelDropout <= 1) {
		return &nn.ConfigError{Field: "label_dropout", Reason: fmt.Sprintf("want a rate in [0, 1], got %v", c.LabelDropout)}
	}
	return nil
}

func (c Config) checkClasses() error {
	if n := len(c.Classes); n != 0 && n != c.LabelDim {
		return &nn.ConfigError{Field: "classes", Reason: fmt.Sprintf("want no names or label_dim = %d of them, got %d",
			c.LabelDim, n)}
	}
	for i, name := range c.Classes {
		if name == "" || slices.Contains(c.Classes[:i], name) {
			return &nn.ConfigError{Field: "classes", Reason: fmt.Sprintf("want distinct names, got %q at %d", name, i)}
		}
	}
	return nil
}

// checkSong looks at the arguments that only SongUNet has.
func (c Config) checkSong() error {
	if c.ModelType == DhariwalUNet {
		for name, set := range map[string]bool{
			"embedding_type": c.EmbeddingType != "", "channel_mult_noise": c.ChannelMultNoise != 0,
			"encoder_type": c.EncoderType != "", "decoder_type": c.DecoderType != "", "resample_filter": c.ResampleFilter != nil,
		} {
			if set {
				return unknown(name, c.ModelType)
			}
		}
		return nil
	}
	for _, f := range []struct {
		name, value string
		allowed     []string
	}{
		{"embedding_type", c.EmbeddingType, []string{"positional", "fourier"}},
		{"encoder_type", c.EncoderType, []string{"standard", "skip", "residual"}},
		{"decoder_type", c.DecoderType, []string{"standard", "skip"}},
	} {
		if !slices.Contains(f.allowed, f.value) {
			return &nn.ConfigError{Field: f.name, Reason: fmt.Sprintf("want %s, got %q", strings.Join(f.allowed, " or "),
				f.value)}
		}
	}
	if c.ChannelMultNoise < 1 || c.ChannelMultNoise > maxBlocks {
		return &nn.ConfigError{Field: "channel_mult_noise", Reason: fmt.Sprintf("want an integer from 1 to %d, got %d",
			maxBlocks, c.ChannelMultNoise)}
	}
	sum := 0.0
	for _, f := range c.ResampleFilter {
		sum += f
	}
	if n := len(c.ResampleFilter); n == 0 || n%2 != 0 || n > maxBlocks || !(math.Abs(sum) > 0) || math.IsInf(sum, 0) {
		return &nn.ConfigError{
			Field:  "resample_filter",
			Reason: fmt.Sprintf("want an even number of taps with a nonzero sum, got %v", c.ResampleFilter),
		}
	}
	return nil
}
