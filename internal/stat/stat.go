// Package stat sums up repeated measurements.
package stat

import (
	"fmt"
	"slices"
)

// Stat sums up what the rounds gave: quartiles and the median.
type Stat struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// Of gives the quartiles of values, of which there is at least one.
func Of(values []float64) Stat {
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 {
		x := q * float64(len(sorted)-1)
		i := int(x)
		if i+1 == len(sorted) {
			return sorted[i]
		}
		return sorted[i] + (x-float64(i))*(sorted[i+1]-sorted[i])
	}
	return Stat{Low: at(0.25), Median: at(0.5), High: at(0.75)}
}

// Text writes the median and, in brackets, the quartiles, by a format for one number.
func (s Stat) Text(format string) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.Median, s.Low, s.High)
}

// Ratios divides element by element.
func Ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}
