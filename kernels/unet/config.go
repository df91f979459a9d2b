package unet

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
	"github.com/anisoflight/anisoflight/schedule"
)

// The values of Config.ModelType.
const (
	SongUNet     = "SongUNet"
	DhariwalUNet = "DhariwalUNet"
)

// Config holds the keyword arguments of EDM's EDMPrecond and of its networks, by their own names. Start from [Defaults]
// or [Parse]: a zero field is a zero, not a default.
type Config struct {
	ModelType     string             `json:"model_type"`     // SongUNet or DhariwalUNet
	ImgResolution kernels.Resolution `json:"img_resolution"` // one number, or [height, width]
	ImgChannels   int                `json:"img_channels"`
	LabelDim      int                `json:"label_dim"`  // number of classes, 0 = unconditional
	UseFP16       bool               `json:"use_fp16"`   // accepted, without effect
	SigmaMin      Extended           `json:"sigma_min"`  // smallest noise level the network is meant for
	SigmaMax      Extended           `json:"sigma_max"`  // largest
	SigmaData     float64            `json:"sigma_data"` // standard deviation of the data

	AugmentDim      int     `json:"augment_dim"`      // augmentation labels, 0 = none
	ModelChannels   int     `json:"model_channels"`   // base of the channel counts
	ChannelMult     []int   `json:"channel_mult"`     // channels / ModelChannels, by level
	ChannelMultEmb  int     `json:"channel_mult_emb"` // width of the embedding / ModelChannels
	NumBlocks       int     `json:"num_blocks"`       // residual blocks per level
	AttnResolutions []int   `json:"attn_resolutions"` // resolutions (heights) with self-attention
	Dropout         float64 `json:"dropout"`          // rate inside the blocks, in training
	LabelDropout    float64 `json:"label_dropout"`    // rate of dropping the class, in training

	// SongUNet only.
	EmbeddingType string `json:"embedding_type,omitempty"` // "positional" (DDPM++) or "fourier" (NCSN++)
	// width of the noise embedding / ModelChannels: 1 or 2
	ChannelMultNoise int       `json:"channel_mult_noise,omitempty"`
	EncoderType      string    `json:"encoder_type,omitempty"`    // "standard" (DDPM++) or "residual" (NCSN++)
	DecoderType      string    `json:"decoder_type,omitempty"`    // "standard"
	ResampleFilter   []float64 `json:"resample_filter,omitempty"` // [1, 1] (DDPM++) or [1, 3, 3, 1] (NCSN++)

	// Classes names the labels: none, or LabelDim names. Not an argument of EDM's.
	Classes []string `json:"classes,omitempty"`
	// RatioEmbedding is the number of log-ratio inputs: J−1 for a network that sees the noise levels of J subspaces, 0 for
	// EDM's own. Not an argument of EDM's.
	RatioEmbedding int `json:"ratio_embedding,omitempty"`
	// Parametrization says how D is made of the network's output; nil means EDM's with SigmaData. Not an argument of
	// EDM's, which has a class for each.
	Parametrization *parametrization.Parametrization `json:"parametrization,omitempty"`
	// Normalization maps data in units of their own to those that the network sees; nil means images in [−1, 1]. Not an
	// argument of EDM's.
	Normalization *normalization.Affine `json:"normalization,omitempty"`
}

// Defaults returns EDM's defaults for a model type; the image's size and the label count are left at zero. Of an
// unknown type only the common ones are set.
func Defaults(modelType string) Config {
	c := Config{
		ModelType: modelType, SigmaMax: Extended(math.Inf(1)), SigmaData: 0.5,
		ChannelMultEmb: 4, Dropout: 0.10,
	}
	switch modelType {
	case SongUNet:
		c.ModelChannels, c.ChannelMult, c.NumBlocks = 128, []int{1, 2, 2, 2}, 4
		c.AttnResolutions = []int{16}
		c.EmbeddingType, c.ChannelMultNoise = "positional", 1
		c.EncoderType, c.DecoderType = "standard", "standard"
		c.ResampleFilter = []float64{1, 1}
	case DhariwalUNet:
		c.ModelChannels, c.ChannelMult, c.NumBlocks = 192, []int{1, 2, 3, 4}, 3
		c.AttnResolutions = []int{32, 16, 8}
	}
	return c
}

// Parse returns the network of a config.json: one JSON object with the fields of [Config], EDM's defaults where a field
// is absent (model_type too: DhariwalUNet). What cannot be used is a *[nn.ConfigError].
func Parse(data []byte) (*Net, error) {
	head := struct {
		ModelType string `json:"model_type"`
	}{DhariwalUNet}
	_ = json.Unmarshal(data, &head) // the strict reading below says what is wrong
	c := Defaults(head.ModelType)
	if err := nn.DecodeConfig(data, `EDM's arguments, with infinity as "inf"`, &c); err != nil {
		return nil, err
	}
	return New(c)
}

// noiseLevels returns those that the network was trained on: its own and its parametrisation's.
func (c Config) noiseLevels() schedule.Range {
	r := schedule.Range{Min: float64(c.SigmaMin), Max: float64(c.SigmaMax)}
	if math.IsInf(r.Max, 1) {
		r.Max = 0
	}
	return r.Within(c.Parametrization.Range())
}

// Extended is a float64 that may be infinite, which JSON writes as "inf".
type Extended float64

// MarshalJSON writes a number, or "inf".
func (e Extended) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(e), 1) {
		return []byte(`"inf"`), nil
	}
	return json.Marshal(float64(e))
}

// UnmarshalJSON reads a number, or "inf".
func (e *Extended) UnmarshalJSON(b []byte) error {
	if string(b) == `"inf"` {
		*e = Extended(math.Inf(1))
		return nil
	}
	if json.Unmarshal(b, (*float64)(e)) != nil {
		return errors.New(`must be a number or "inf"`)
	}
	return nil
}
