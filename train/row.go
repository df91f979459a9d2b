package train

import (
	"math"

	"github.com/anisoflight/anisoflight/kernels"
)

// Row is what one step reports. What a stage lacks is NaN: the energy and the schedule's columns in pretrain, the
// network's columns where it is frozen, the terms that the estimator's mode does not have, the MFU before the peak is
// measured.
type Row struct {
	Step               int64   // from 1
	Kimg               float64 // thousands of images seen, this step's included
	Loss               float64 // batch mean
	Energy             float64 // E = T²·Loss, the path energy with time rescaled to [0, 1]
	GradNorm           float64 // of the network's gradient
	ScheduleGradNorm   float64 // |d_θH|
	ScheduleGradStderr float64 // standard error of d_θH over the batch, as a norm: √Σ_i Var
	LR                 float64 // of the network in this step
	ScheduleLR         float64
	Seconds            float64 // that the step took

	// ScheduleGradCosine is that of the angle between d_θH and the step's before.
	ScheduleGradCosine float64
	// Share is ⟨d_term, d_θH⟩/|d_θH|² of every term, by kernels.PartNames: they sum to 1.
	Share [len(kernels.PartNames)]float64
	// TermStderr is the standard error of every term, as ScheduleGradStderr of the whole.
	TermStderr [len(kernels.PartNames)]float64

	GFLOPS float64 // 10⁹ FLOP/s over the step's seconds: its convolutions and matrix products
	MFU    float64 // GFLOPS as a share of the device's measured matmul peak, where that is known
}

// RowColumns names the columns of a Row in the order of Row.Values.
var RowColumns = func() []string {
	names := []string{
		"step", "kimg", "loss", "energy", "grad_norm", "schedule_grad_norm", "schedule_grad_stderr", "lr", "schedule_lr",
		"seconds",
		"schedule_grad_cosine",
	}
	for _, prefix := range []string{"share_", "stderr_"} {
		for _, term := range kernels.PartNames {
			names = append(names, prefix+term)
		}
	}
	names = append(names, "gflops", "mfu")
	return names
}()

// emptyRow is all NaN but for the step.
func emptyRow() (r Row) {
	for _, p := range r.fields() {
		*p = math.NaN()
	}
	return r
}

// fields points to the numbers of a row, in the order of RowColumns without the step.
func (r *Row) fields() []*float64 {
	fields := []*float64{
		&r.Kimg, &r.Loss, &r.Energy, &r.GradNorm, &r.ScheduleGradNorm, &r.ScheduleGradStderr, &r.LR, &r.ScheduleLR,
		&r.Seconds,
		&r.ScheduleGradCosine,
	}
	for i := range r.Share {
		fields = append(fields, &r.Share[i])
	}
	for i := range r.TermStderr {
		fields = append(fields, &r.TermStderr[i])
	}
	return append(fields, &r.GFLOPS, &r.MFU)
}

// Values returns the row as numbers, in the order of RowColumns.
func (r Row) Values() []float64 {
	values := []float64{float64(r.Step)}
	for _, p := range r.fields() {
		values = append(values, *p)
	}
	return values
}

// RowOf returns the row of such numbers; any other number of them is an error.
func RowOf(values []float64) (Row, error) {
	if len(values) != len(RowColumns) {
		return Row{}, stateError("a row of %d columns; there are %d", len(values), len(RowColumns))
	}
	r := Row{Step: int64(values[0])}
	for i, p := range r.fields() {
		*p = values[i+1]
	}
	return r, nil
}

// StoredRows returns stored rows. One that is no row ends the resumption of its run, but not the reading of the rest.
func StoredRows(stored [][]float64) []Row {
	var rows []Row
	for _, values := range stored {
		if row, err := RowOf(values); err == nil {
			rows = append(rows, row)
		}
	}
	return rows
}
