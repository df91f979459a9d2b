package runs

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/train"
)

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
