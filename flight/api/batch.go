package api

import (
	"fmt"
	"time"
)

// Batch is some rows of a stream. Cols[i] is the flat row-major slice of Schema.Columns[i]: []uint8, []int32, []int64,
// []uint64, []float32 or []float64 of Rows × Column.Len numbers. A batch is handed over, not shared: its maker does not
// touch it again.
type Batch struct {
	Rows int
	Cols []any
}

// Event is what an operation sends: rows, progress, or both. An event without rows travels as a batch of
// no rows that carries the metadata.
type Event struct {
	Batch *Batch
	Meta  Meta
}

// Meta is the app_metadata of one message: a JSON object whose "event" is "progress", "batch" or "end".
type Meta map[string]any

// Progress says that step of steps are done. More pairs of key and value may follow.
func Progress(step, steps int, more ...any) Meta {
	m := Meta{"event": "progress", "step": step, "steps": steps}
	for i := 0; i+1 < len(more); i += 2 {
		m[fmt.Sprint(more[i])] = more[i+1]
	}
	return m
}

// ProgressEvery is the least time between two messages that carry progress alone.
const ProgressEvery = 100 * time.Millisecond

// Sparsely returns a report that hands progress on now and then.
func Sparsely(progress func(Meta)) func(done, total int) {
	var last time.Time
	return func(done, total int) {
		if now := time.Now(); now.Sub(last) >= ProgressEvery {
			last = now
			progress(Progress(done, total))
		}
	}
}

// Done is the metadata of a batch after which done of total rows have been sent; total < 0 is left out, for streams
// whose length is not known.
func Done(done, total int64) Meta {
	m := Meta{"event": "batch", "done": done}
	if total >= 0 {
		m["total"] = total
	}
	return m
}

// MakeColumn returns an empty flat slice for n rows of c.
func MakeColumn(c Column, n int) any {
	n *= c.Len()
	switch c.Type {
	case Uint8:
		return make([]uint8, n)
	case Int32:
		return make([]int32, n)
	case Int64:
		return make([]int64, n)
	case Uint64:
		return make([]uint64, n)
	case Float32:
		return make([]float32, n)
	case Float64:
		return make([]float64, n)
	}
	panic(fmt.Sprintf("api: column %q has no type", c.Name))
}

// ColumnOf returns the numbers of the named column. It panics if the schema has no such column or the batch holds
// another type: both were checked when the stream was opened.
func ColumnOf[E any](s Schema, b Batch, name string) []E {
	return b.Cols[s.Index(name)].([]E)
}
