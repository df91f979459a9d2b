package unet

import (
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
			return nn.ConfigErrorf(f.name, "must be an integer from %d to %d, got %d", f.lo, f.hi, f.value)
		}
	}
	if n := len(c.ChannelMult); n < 1 || n > 16 {
		return nn.ConfigErrorf("channel_mult", "must be one integer per level, 1 to 16 levels, got %d", n)
	}
	for _, m := range c.ChannelMult {
		if m < 1 || m > maxBlocks {
			return nn.ConfigErrorf("channel_mult", "must be integers from 1 to %d, got %d", maxBlocks, m)
		}
	}
	if step := 1 << (len(c.ChannelMult) - 1); c.ImgResolution.Height%step != 0 ||
		c.ImgResolution.Width%step != 0 {
		return nn.ConfigErrorf("img_resolution",
			"must be a multiple of %d, as it is halved %d times, got %v", step, len(c.ChannelMult)-1, c.ImgResolution)
	}
	if err := c.Normalization.Fits(c.ImgChannels); err != nil {
		return nn.ConfigErrorf("normalization", "%s", err.Error())
	}
	if c.ModelChannels%2 != 0 {
		return nn.ConfigErrorf("model_channels", "must be even for the noise embedding, got %d", c.ModelChannels)
	}
	for _, r := range c.AttnResolutions {
		if r < 1 {
			return nn.ConfigErrorf("attn_resolutions", "must be resolutions of at least 1, got %d", r)
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
		return nn.ConfigErrorf("model_type", "must be %s or %s, got %q", SongUNet, DhariwalUNet, c.ModelType)
	}
	return nil
}

func (c Config) checkNumbers() error {
	if !(c.SigmaData > 0) || math.IsInf(c.SigmaData, 0) {
		return nn.ConfigErrorf("sigma_data", "must be a positive number, got %v", c.SigmaData)
	}
	if !(c.SigmaMin >= 0) || math.IsInf(float64(c.SigmaMin), 0) {
		return nn.ConfigErrorf("sigma_min", "must be a number from 0, got %v", float64(c.SigmaMin))
	}
	if !(c.SigmaMax > c.SigmaMin) {
		return nn.ConfigErrorf("sigma_max", "must be a number above sigma_min, or \"inf\", got %v", float64(c.SigmaMax))
	}
	if p := c.Parametrization; p != nil && p.Kind() == parametrization.EDM && p.SigmaData() != c.SigmaData {
		return nn.ConfigErrorf(parametrization.Section+".sigma_data",
			"must be the configuration's own sigma_data, %v, got %v; leave one of them out", c.SigmaData, p.SigmaData())
	}
	if r := c.noiseLevels(); r.Empty() {
		return nn.ConfigErrorf("sigma_max",
			"no noise level lies within sigma_min, sigma_max and the parametrization's own; got %v … %v", r.Min, r.Max)
	}
	if !(c.Dropout >= 0 && c.Dropout < 1) {
		return nn.ConfigErrorf("dropout", "must be a rate in [0, 1), got %v", c.Dropout)
	}
	if !(c.LabelDropout >= 0 && c.LabelDropout <= 1) {
		return nn.ConfigErrorf("label_dropout", "must be a rate in [0, 1], got %v", c.LabelDropout)
	}
	return nil
}

func (c Config) checkClasses() error {
	if n := len(c.Classes); n != 0 && n != c.LabelDim {
		return nn.ConfigErrorf("classes", "must be no names or label_dim = %d of them, got %d", c.LabelDim, n)
	}
	for i, name := range c.Classes {
		if name == "" || slices.Contains(c.Classes[:i], name) {
			return nn.ConfigErrorf("classes", "must be distinct names, got %q at %d", name, i)
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
			return nn.ConfigErrorf(f.name, "must be %s, got %q", strings.Join(f.allowed, " or "), f.value)
		}
	}
	if c.ChannelMultNoise < 1 || c.ChannelMultNoise > maxBlocks {
		return nn.ConfigErrorf("channel_mult_noise",
			"must be an integer from 1 to %d, got %d", maxBlocks, c.ChannelMultNoise)
	}
	sum := 0.0
	for _, f := range c.ResampleFilter {
		sum += f
	}
	if n := len(c.ResampleFilter); n == 0 || n%2 != 0 || n > maxBlocks || !(math.Abs(sum) > 0) || math.IsInf(sum, 0) {
		return nn.ConfigErrorf("resample_filter",
			"must be an even number of taps with a nonzero sum, got %v", c.ResampleFilter)
	}
	return nil
}
