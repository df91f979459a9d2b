package normalization

import (
	"fmt"
	"math"
)

// Measure measures the mean, the standard deviation and the range of each channel.
type Measure struct {
	n       []float64 // number of values by channel
	first   []float64 // the first value, which is subtracted to keep precision
	sum     []float64 // sums of differences from first
	squares []float64 // sums of their squares

	// Low and High are the minimum and the maximum of each channel.
	Low, High []float32
}

// NewMeasure returns a Measure of a number of channels.
func NewMeasure(channels int) *Measure {
	zeros := func() []float64 { return make([]float64, channels) }
	return &Measure{zeros(), zeros(), zeros(), zeros(), make([]float32, channels), make([]float32, channels)}
}

// Add adds the value x of channel c.
func (m *Measure) Add(x float32, c int) {
	if m.n[c] == 0 {
		m.first[c], m.Low[c], m.High[c] = float64(x), x, x
	}
	m.Low[c], m.High[c] = min(m.Low[c], x), max(m.High[c], x)
	d := float64(x) - m.first[c]
	m.n[c]++
	m.sum[c] += d
	m.squares[c] += d * d
}

// Moments returns the mean and the standard deviation of each channel.
func (m *Measure) Moments() (mean, std []float64) {
	for c, n := range m.n {
		d := m.sum[c] / n
		mean = append(mean, m.first[c]+d)
		std = append(std, math.Sqrt(max(0, m.squares[c]/n-d*d)))
	}
	return mean, std
}

// Scales returns the scale of each channel that makes its standard deviation [SigmaData]. A constant channel is an
// error.
func (m *Measure) Scales() ([]float64, error) {
	mean, std := m.Moments()
	for c, s := range std {
		if !(s > 0) {
			return nil, fmt.Errorf("channel %d is %g everywhere, so that its scale cannot be measured; give scale, "+
				"or omit the channel", c, mean[c])
		}
		std[c] = s / SigmaData
	}
	return std, nil
}
