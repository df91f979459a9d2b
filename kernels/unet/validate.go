package unet

import (
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
)

// Bounds on what a configuration may ask for, far above any published network and far below what would exhaust a
// machine before an error could be given.
const (
	maxSize   = 1 << 16 // sizes and counts
	maxBlocks = 1 << 8  // blocks per level, multipliers, filter taps
	maxParams = 1 << 32
)

// check looks at every field by itself.
func (c Config) check() error {
	levels, finite := len(c.ChannelMult), func(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }
	step := 1 << min(max(levels-1, 0), 16)
	height, width := c.ImgResolution.Height, c.ImgResolution.Width
	rules := []nn.Rule{nn.OneOf("model_type", c.ModelType, SongUNet, DhariwalUNet)}
	rules = append(rules, nn.ImageRules(height, width, c.ImgChannels, c.LabelDim, c.RatioEmbedding, c.Classes)...)
	rules = append(
		rules,
		nn.Integer("augment_dim", c.AugmentDim, 0, maxSize),
		nn.Integer("model_channels", c.ModelChannels, 4, maxSize),
		nn.Integer("channel_mult_emb", c.ChannelMultEmb, 1, maxBlocks),
		nn.Integer("num_blocks", c.NumBlocks, 1, maxBlocks),
		nn.Must(1 <= levels && levels <= 16, "channel_mult", "one integer per level, 1 to 16 levels", levels),
		nn.Must(height%step == 0 && width%step == 0, "img_resolution",
			fmt.Sprintf("a multiple of %d, as it is halved %d times", step, levels-1), c.ImgResolution),
		nn.Must(c.ModelChannels%2 == 0, "model_channels", "even for the noise embedding", c.ModelChannels),
		nn.Must(c.SigmaData > 0 && finite(c.SigmaData), "sigma_data", "a positive number", c.SigmaData),
		nn.Must(c.SigmaMin >= 0 && finite(float64(c.SigmaMin)), "sigma_min", "a number from 0", float64(c.SigmaMin)),
		nn.Must(c.SigmaMax > c.SigmaMin, "sigma_max", `a number above sigma_min, or "inf"`, float64(c.SigmaMax)),
		nn.Must(c.Dropout >= 0 && c.Dropout < 1, "dropout", "a rate in [0, 1)", c.Dropout),
		nn.Must(c.LabelDropout >= 0 && c.LabelDropout <= 1, "label_dropout", "a rate in [0, 1]", c.LabelDropout),
	)
	for _, m := range c.ChannelMult {
		rules = append(rules, nn.Integer("channel_mult", m, 1, maxBlocks))
	}
	for _, r := range c.AttnResolutions {
		rules = append(rules, nn.Must(r >= 1, "attn_resolutions", "resolutions of at least 1", r))
	}
	for i, name := range c.Classes {
		distinct := name != "" && !slices.Contains(c.Classes[:i], name)
		rules = append(rules, nn.Must(distinct, "classes", "distinct names", fmt.Sprintf("%q at %d", name, i)))
	}
	if p := c.Parametrization; p != nil && p.Kind() == parametrization.EDM {
		rules = append(rules, nn.Must(p.SigmaData() == c.SigmaData, parametrization.Section+".sigma_data",
			fmt.Sprintf("the configuration's own sigma_data, %v, or left out", c.SigmaData), p.SigmaData()))
	}
	if c.ModelType == SongUNet {
		rules = append(rules, c.songRules()...)
	} else {
		const must = "left out where model_type is " + DhariwalUNet
		rules = append(
			rules,
			nn.Must(c.EmbeddingType == "", "embedding_type", must, c.EmbeddingType),
			nn.Must(c.ChannelMultNoise == 0, "channel_mult_noise", must, c.ChannelMultNoise),
			nn.Must(c.EncoderType == "", "encoder_type", must, c.EncoderType),
			nn.Must(c.DecoderType == "", "decoder_type", must, c.DecoderType),
			nn.Must(c.ResampleFilter == nil, "resample_filter", must, c.ResampleFilter),
		)
	}
	if err := nn.Broken(rules...); err != nil {
		return err
	}
	if err := c.Normalization.Fits(c.ImgChannels); err != nil {
		return nn.ConfigErrorf("normalization", "%v", err)
	}
	if r := c.noiseLevels(); r.Empty() {
		return nn.ConfigErrorf("sigma_max",
			"no noise level lies within sigma_min, sigma_max and the parametrization's own; got %v … %v", r.Min, r.Max)
	}
	return nil
}

// songRules are those of the arguments that only SongUNet has.
func (c Config) songRules() []nn.Rule {
	taps, sum := len(c.ResampleFilter), 0.0
	for _, f := range c.ResampleFilter {
		sum += f
	}
	return []nn.Rule{
		nn.OneOf("embedding_type", c.EmbeddingType, "positional", "fourier"),
		nn.OneOf("encoder_type", c.EncoderType, "standard", "residual"),
		nn.OneOf("decoder_type", c.DecoderType, "standard"),
		nn.Integer("channel_mult_noise", c.ChannelMultNoise, 1, maxBlocks),
		nn.Must(taps > 0 && taps%2 == 0 && taps <= maxBlocks && math.Abs(sum) > 0 && !math.IsInf(sum, 0),
			"resample_filter", "an even number of taps with a nonzero sum", c.ResampleFilter),
	}
}
