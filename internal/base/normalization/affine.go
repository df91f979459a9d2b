package normalization

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// SigmaData is the standard deviation of each channel after a measured map: EDM's σ_data, which the defaults of its
// networks and noise levels assume.
const SigmaData = 0.5

// The bounds of a scale, within which values stay in the range of a float32.
const (
	minScale = 1e-30
	maxScale = 1e30
)

// Affine maps channel c of the data to (x − Mean[c]) / Scale[c]. It is immutable. A nil *Affine is the identity, for
// images in [−1, 1].
type Affine struct {
	Mean  []float64 `json:"mean"`
	Scale []float64 `json:"scale"`
}

// New returns the map of a number of channels. One value of mean or scale is that of all channels. Without values the
// mean is 0 and the scale 1.
func New(mean, scale []float64, channels int) (*Affine, error) {
	a := &Affine{}
	var err error
	if a.Mean, err = perChannel("mean", mean, 0, channels); err != nil {
		return nil, err
	}
	if a.Scale, err = perChannel("scale", scale, 1, channels); err != nil {
		return nil, err
	}
	return a, a.check()
}

func perChannel(name string, values []float64, byDefault float64, channels int) ([]float64, error) {
	switch len(values) {
	case 0:
		return slices.Repeat([]float64{byDefault}, channels), nil
	case 1:
		return slices.Repeat(values, channels), nil
	case channels:
		return slices.Clone(values), nil
	}
	return nil, fmt.Errorf("%s must be one number, or one for each of %d channels, got %d", name, channels, len(values))
}

func (a *Affine) check() error {
	if len(a.Mean) == 0 || len(a.Mean) != len(a.Scale) {
		return fmt.Errorf("mean and scale must have a number for each channel, got %d and %d", len(a.Mean), len(a.Scale))
	}
	for c := range a.Mean {
		if m := a.Mean[c]; !(math.Abs(m) <= math.MaxFloat32) {
			return fmt.Errorf("mean must be finite, got %g for channel %d", m, c)
		}
		if s := a.Scale[c]; !(s >= minScale && s <= maxScale) {
			return fmt.Errorf("scale must be between %g and %g, got %g for channel %d", minScale, maxScale, s, c)
		}
	}
	return nil
}

// UnmarshalJSON decodes and checks a map: a number for each channel.
func (a *Affine) UnmarshalJSON(b []byte) error {
	type fields Affine // without this method
	var f fields
	if err := json.Unmarshal(b, &f); err != nil {
		return errors.New("normalization must be {\"mean\": […], \"scale\": […]}, with a number for each channel")
	}
	*a = Affine(f)
	return a.check()
}

// Fits returns an error unless the map has the number of channels. Nil fits every number.
func (a *Affine) Fits(channels int) error {
	if a == nil || len(a.Mean) == channels {
		return nil
	}
	return fmt.Errorf("mean and scale have %d numbers for %d channels", len(a.Mean), channels)
}

// Equal reports whether two maps are the same.
func (a *Affine) Equal(b *Affine) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.Mean, b.Mean) && slices.Equal(a.Scale, b.Scale)
}

// Clone returns a copy, nil for nil.
func (a *Affine) Clone() *Affine {
	if a == nil {
		return nil
	}
	return &Affine{slices.Clone(a.Mean), slices.Clone(a.Scale)}
}

// String returns the JSON of the map, and "none" for nil.
func (a *Affine) String() string {
	if a == nil {
		return "none"
	}
	text, _ := json.Marshal(a) // all numbers are finite
	return string(text)
}

// Forward maps values [… C] in place from the data's units to the network's.
func (a *Affine) Forward(x []float32) {
	if a == nil {
		return
	}
	for i := range x {
		c := i % len(a.Mean)
		x[i] = float32((float64(x[i]) - a.Mean[c]) / a.Scale[c])
	}
}

// Back maps values [… C] in place from the network's units to the data's.
func (a *Affine) Back(x []float32) {
	if a == nil {
		return
	}
	for i := range x {
		c := i % len(a.Mean)
		x[i] = float32(float64(x[i])*a.Scale[c] + a.Mean[c])
	}
}

// IsFinite reports whether a value of channel c is finite, also after Forward.
func (a *Affine) IsFinite(x float32, c int) bool {
	v := float64(x)
	if a != nil {
		v = float64(float32((v - a.Mean[c]) / a.Scale[c]))
	}
	return v-v == 0
}
