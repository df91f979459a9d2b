package normalization

import (
	"fmt"
	"math"
)

// Measure takes the mean and the standard deviation of each channel. What it finds depends on the values and their
// order alone, not on the pieces that they come in.
type Measure struct {
	n       []float64 // values so far, by channel
	first   []float64 // value that all are seen from, so that no digits are lost
	sum     []float64 // of the differences to it
	squares []float64

	// Low and High are the least and the greatest value of each channel.
	Low, High []float32
}

// NewMeasure returns a Measure of so many channels.
func NewMeasure(channels int) *Measure {
	of := func() []float64 { return make([]float64, channels) }
	return &Measure{of(), of(), of(), of(), make([]float32, channels), make([]float32, channels)}
}

// Add takes the value x of channel c.
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

// Scales returns the scale of each channel after which its standard deviation is [SigmaData]. A channel that is the
// same everywhere has none.
func (m *Measure) Scales() ([]float64, error) {
	mean, std := m.Moments()
	for c, s := range std {
		if !(s > 0) {
			return nil, fmt.Errorf("channel %d is %g everywhere, so that its scale cannot be measured; declare scale, "+
				"or leave the channel out", c, mean[c])
		}
		std[c] = s / SigmaData
	}
	return std, nil
}
