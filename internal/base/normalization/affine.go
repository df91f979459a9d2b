package normalization

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// SigmaData is the standard deviation that a measured map gives each channel: EDM's σ_d, for which the defaults of its
// networks and noise levels are made.
const SigmaData = 0.5

// The scales that a map may have: beyond them a float32 would leave its range on either way.
const (
	minScale = 1e-30
	maxScale = 1e30
)

// Affine maps channel c of the data to (x − Mean[c]) / Scale[c]. It is immutable. A nil *Affine is the identity, of
// images in [−1, 1].
type Affine struct {
	Mean  []float64 `json:"mean"`
	Scale []float64 `json:"scale"`
}

// New returns the map of so many channels; one number stands for all of them, and none for a mean of 0 or a scale of 1.
func New(mean, scale []float64, channels int) (*Affine, error) {
	a := &Affine{}
	var err error
	if a.Mean, err = spread("mean", mean, 0, channels); err != nil {
		return nil, err
	}
	if a.Scale, err = spread("scale", scale, 1, channels); err != nil {
		return nil, err
	}
	return a, a.check()
}

func spread(name string, values []float64, none float64, channels int) ([]float64, error) {
	switch len(values) {
	case 0:
		return slices.Repeat([]float64{none}, channels), nil
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
			return fmt.Errorf("scale must be positive and lie in %g … %g, got %g for channel %d", minScale, maxScale, s, c)
		}
	}
	return nil
}

// UnmarshalJSON reads what JSON writes, strictly: a number for each channel.
func (a *Affine) UnmarshalJSON(b []byte) error {
	type plain Affine
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return errors.New("normalization is {\"mean\": […], \"scale\": […]}, a number for each channel")
	}
	*a = Affine(p)
	return a.check()
}

// Fits returns an error unless the map is one of so many channels. Nil fits all.
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

// Clone returns a copy; nil for nil.
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

// Forward maps values [… C] in place from the data's units to the network's. Nil leaves them as they are.
func (a *Affine) Forward(x []float32) {
	if a == nil {
		return
	}
	for i := range x {
		c := i % len(a.Mean)
		x[i] = float32((float64(x[i]) - a.Mean[c]) / a.Scale[c])
	}
}

// Back maps values [… C] in place from the network's units to the data's. Nil leaves them as they are.
func (a *Affine) Back(x []float32) {
	if a == nil {
		return
	}
	for i := range x {
		c := i % len(a.Mean)
		x[i] = float32(float64(x[i])*a.Scale[c] + a.Mean[c])
	}
}

// Holds reports whether a value of channel c is finite, and stays so on the way to the network. Nil asks of the value
// alone.
func (a *Affine) Holds(x float32, c int) bool {
	v := float64(x)
	if a != nil {
		v = float64(float32((v - a.Mean[c]) / a.Scale[c]))
	}
	return v-v == 0
}
