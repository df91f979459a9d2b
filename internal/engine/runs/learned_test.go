package runs

import (
	"math"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/train"
)

// A gradient is noted whose square is, in the mean over the window, that of its standard error.
func TestANoisyGradientIsNoted(t *testing.T) {
	rows := func(n int, norm, stderr float64) (out []train.Row) {
		for range n {
			out = append(out, train.Row{ScheduleGradNorm: norm, ScheduleGradStderr: stderr})
		}
		return out
	}
	for _, q := range []struct {
		rows  []train.Row
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

func TestRunEnergies(t *testing.T) {
	rows := make([]train.Row, 40)
	for i := range rows {
		rows[i] = train.Row{Step: int64(i + 1), Energy: float64(i)}
	}
	rows[1].Energy = math.NaN() // a skipped step
	before, after := Energies(rows)
	if math.Abs(before.Value-5./3) > 1e-12 || math.Abs(before.Stderr-math.Sqrt(7./9)) > 1e-12 ||
		math.Abs(after.Value-38) > 1e-12 || math.Abs(after.Stderr-math.Sqrt(1./3)) > 1e-12 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if before, after = Energies(rows[:3]); before != nil || after != nil {
		t.Error("two finite steps have energies at either end")
	}
}
