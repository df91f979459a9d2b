package source

import "github.com/anisoflight/anisoflight/train/data"

// Stored is a sink that writes a stored data set.
type Stored struct{ *data.Writer }

// Add implements Sink.
func (s Stored) Add(p Picture, label int32) error {
	var labels []int32
	if s.Form().Labels {
		labels = []int32{label}
	}
	if p.Float32 != nil {
		return s.Float32(p.Float32, labels)
	}
	return s.Uint8(p.Uint8, labels)
}
