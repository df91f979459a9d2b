package api

import "reflect"

// ScheduleRow is a row of EvaluateSchedule.
type ScheduleRow struct {
	Label    int32   `json:"label"` // −1: shared
	Subspace int32   `json:"subspace"`
	T        float64 `json:"t"`
	G        float64 `json:"g"`
	Gdot     float64 `json:"gdot"`
	Sigma    float64 `json:"sigma"` // √g
}

// EvaluationRow is a row of EvaluateModel.
type EvaluationRow struct {
	Label    int32   `json:"label"` // −1: shared
	Subspace int32   `json:"subspace"`
	T        float64 `json:"t"` // middle of an interval of [0, T]
	Sigma    float64 `json:"sigma"`
	Loss     float64 `json:"loss"`
	Residual float64 `json:"residual"`
	Stderr   float64 `json:"stderr"` // of the residual
}

// PredictionRow is a row of Predict.
type PredictionRow struct {
	Basis      int32   `json:"basis"`     // position in the metadata's bases, separated by spaces
	PerClass   int32   `json:"per_class"` // 1: schedules per class
	K          int32   `json:"k"`         // dimensions of P_1 per channel; 0 for none
	Cut        int32   `json:"cut"`       // P_1 of dct holds max(u, v) < cut; otherwise 0
	Cut2       int32   `json:"cut_2"`     // the same of P_2; 0 without P_3
	Energy     float64 `json:"energy"`
	Stderr     float64 `json:"stderr"`
	Gain       float64 `json:"gain"` // 1 − energy/(energy of none)
	GainStderr float64 `json:"gain_stderr"`
}

// ColumnsOf returns the columns of a table whose rows are structs of numbers: the fields in order, by their JSON names.
// An array has a column for each of its ColumnNames, after the name of the field.
func ColumnsOf(row reflect.Type) (columns []Column) {
	for f := range row.Fields() {
		names, kind := []string{""}, f.Type.Kind()
		if array, ok := reflect.Zero(f.Type).Interface().(interface{ ColumnNames() []string }); ok {
			names, kind = array.ColumnNames(), f.Type.Elem().Kind()
		}
		for _, name := range names {
			columns = append(columns, Column{Name: f.Tag.Get("json") + name, Type: TypeOf(kind)})
		}
	}
	return columns
}

// RowsBatch returns a batch of the columns of rows, which are structs of numbers.
func RowsBatch[R any](rows []R) *Batch {
	b := &Batch{Rows: len(rows)}
	var columns []reflect.Value
	for _, column := range ColumnsOf(reflect.TypeFor[R]()) {
		numbers := MakeColumn(column, len(rows))
		b.Cols, columns = append(b.Cols, numbers), append(columns, reflect.ValueOf(numbers))
	}
	all := reflect.ValueOf(rows)
	for i := range rows {
		c := 0
		set := func(v reflect.Value) { columns[c].Index(i).Set(v); c++ }
		for _, field := range all.Index(i).Fields() {
			if field.Kind() != reflect.Array {
				set(field)
				continue
			}
			for k := range field.Len() {
				set(field.Index(k))
			}
		}
	}
	return b
}
