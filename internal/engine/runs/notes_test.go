package runs

import (
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/train"
)

// A gradient is noted whose square is, in the mean over the window, that of its standard error.
func TestANoisyGradientIsNoted(t *testing.T) {
	rows := func(n int, norm, stderr float64) (out [][]float64) {
		for range n {
			row := train.Row{ScheduleGradNorm: norm, ScheduleGradStderr: stderr}
			out = append(out, row.Values())
		}
		return out
	}
	for _, q := range []struct {
		rows  [][]float64
		noted bool
	}{
		{rows(noiseWindow, 1, 1), true},
		{rows(noiseWindow, 2, 1), false},
		{rows(noiseWindow-1, 1, 1), false},
		{append(rows(99, 9, 1), rows(noiseWindow, 1, 1)...), true},
		{rows(noiseWindow, 0, 0), false},
	} {
		if note := noisy(q.rows); strings.Contains(note, "standard error") != q.noted {
			t.Errorf("%d rows: %q, want a note: %t", len(q.rows), note, q.noted)
		}
	}
}
