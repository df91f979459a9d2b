package tables

import "github.com/anisoflight/anisoflight/flight/api"

// Rows collects rows of columns of int32 and, after them, of float64.
type Rows struct {
	whole   [][]int32
	numbers [][]float64
}

// NewRows returns no rows of these columns.
func NewRows(columns []api.Column) *Rows {
	r := &Rows{}
	for _, c := range columns {
		if c.Type == api.Int32 {
			r.whole = append(r.whole, nil)
		} else {
			r.numbers = append(r.numbers, nil)
		}
	}
	return r
}

// Add adds a row.
func (r *Rows) Add(whole []int, numbers []float64) {
	for c, v := range whole {
		r.whole[c] = append(r.whole[c], int32(v))
	}
	for c, v := range numbers {
		r.numbers[c] = append(r.numbers[c], v)
	}
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.whole[0]) }

// Send emits the rows as the last ones of a reply.
func (r *Rows) Send(emit func(api.Event) error) error {
	n := int64(r.Len())
	return emit(api.Event{Batch: r.Batch(), Meta: api.Done(n, n)})
}

// Batch returns the rows.
func (r *Rows) Batch() *api.Batch {
	out := &api.Batch{Rows: r.Len()}
	for _, v := range r.whole {
		out.Cols = append(out.Cols, v)
	}
	for _, v := range r.numbers {
		out.Cols = append(out.Cols, v)
	}
	return out
}
