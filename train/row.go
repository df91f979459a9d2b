package train

import (
	"math"
	"reflect"

	"github.com/anisoflight/anisoflight/kernels"
)

// Row is the report of one step. A column without a value is NaN: the energy and the schedule's columns in pretrain,
// the network's columns if it is frozen, terms that the estimator's mode does not have, MFU before the peak is
// measured.
//
// The tags name the columns; an array has a column for each of kernels.PartNames.
type Row struct {
	Step               int64   `json:"step"`                 // from 1
	Kimg               float64 `json:"kimg"`                 // thousands of images seen, this step's included
	Loss               float64 `json:"loss"`                 // batch mean
	Energy             float64 `json:"energy"`               // E = T²·Loss, the path energy, time rescaled to [0, 1]
	GradNorm           float64 `json:"grad_norm"`            // of the network's gradient
	ScheduleGradNorm   float64 `json:"schedule_grad_norm"`   // |d_θH|
	ScheduleGradStderr float64 `json:"schedule_grad_stderr"` // of d_θH over the batch, as a norm: √Σ_i Var
	LR                 float64 `json:"lr"`                   // of the network in this step
	ScheduleLR         float64 `json:"schedule_lr"`
	Seconds            float64 `json:"seconds"`              // duration of the step
	ScheduleGradCosine float64 `json:"schedule_grad_cosine"` // of the angle between d_θH and that of the previous step
	Share              parts   `json:"share_"`               // ⟨d_term, d_θH⟩/|d_θH|² of every term: they sum to 1
	TermStderr         parts   `json:"stderr_"`              // standard error of every term
	GFLOPS             float64 `json:"gflops"`               // 10⁹ FLOP/s of convolutions and matrix products
	MFU                float64 `json:"mfu"`                  // GFLOPS as a share of the device's measured matmul peak
}

// parts is a number for each of kernels.PartNames.
type parts [len(kernels.PartNames)]float64

// ColumnNames returns the names of the parts.
func (parts) ColumnNames() []string { return kernels.PartNames[:] }

// RowColumns names the columns of a Row in the order of Row.Values.
var RowColumns = func() []string {
	names, _ := new(Row).numbers()
	return append([]string{"step"}, names...)
}()

// numbers returns the names of the columns after step, and pointers to their values.
func (r *Row) numbers() (names []string, at []*float64) {
	for f, v := range reflect.ValueOf(r).Elem().Fields() {
		name := f.Tag.Get("json")
		switch p := v.Addr().Interface().(type) {
		case *float64:
			names, at = append(names, name), append(at, p)
		case *parts:
			for i, part := range kernels.PartNames {
				names, at = append(names, name+part), append(at, &p[i])
			}
		}
	}
	return names, at
}

// emptyRow returns a row of NaN at step 0.
func emptyRow() (r Row) {
	_, at := r.numbers()
	for _, p := range at {
		*p = math.NaN()
	}
	return r
}

// Values returns the row as numbers, in the order of RowColumns.
func (r Row) Values() []float64 {
	values := []float64{float64(r.Step)}
	_, at := r.numbers()
	for _, p := range at {
		values = append(values, *p)
	}
	return values
}

// rowOf is the inverse of Values.
func rowOf(values []float64) (Row, error) {
	if len(values) != len(RowColumns) {
		return Row{}, stateError("a row must have %d columns, got %d", len(RowColumns), len(values))
	}
	r := Row{Step: int64(values[0])}
	_, at := r.numbers()
	for i, p := range at {
		*p = values[i+1]
	}
	return r, nil
}

// StoredRows returns the rows of a stored state. It leaves out those that cannot be read, with which Resume fails.
func StoredRows(stored [][]float64) []Row {
	var rows []Row
	for _, values := range stored {
		if row, err := rowOf(values); err == nil {
			rows = append(rows, row)
		}
	}
	return rows
}
