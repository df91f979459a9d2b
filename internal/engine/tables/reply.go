package tables

import (
	"context"
	"encoding/json"
	"iter"
	"math/bits"
	"reflect"
	"strconv"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
)

// Window is how many unanswered batches a client of an exchange should keep in flight: enough to hide the transfer.
const Window = 4

// Metadata returns the metadata of a reply's schema: the operation, the request with its defaults, and pairs of key and
// value.
func Metadata(op string, request any, pairs ...string) map[string]string {
	m := map[string]string{"op": op}
	if text, err := json.Marshal(request); err == nil {
		m["request"] = string(text)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// Note adds notes, if there are any, to a reply's metadata, as a list in JSON.
func Note(metadata map[string]string, notes []string) {
	if text, err := json.Marshal(notes); err == nil && len(notes) > 0 {
		metadata["notes"] = string(text)
	}
}

// Normalized returns the pair of metadata for values in units n, and none for images in [−1, 1].
func Normalized(n *normalization.Affine) []string {
	if n == nil {
		return nil
	}
	return []string{"normalization", n.String()}
}

// OfModel returns the metadata of a reply of a model.
func OfModel(m *catalog.Model, op string, request any) map[string]string {
	pairs := Normalized(m.Shape.Normalization)
	return Metadata(op, request, append(pairs, "model", m.Name, "version", strconv.Itoa(m.Version), "weights", m.Hash)...)
}

// SchemaOf returns the schema of a table of numbers whose rows are structs R.
func SchemaOf[R any](metadata map[string]string) api.Schema {
	return api.Schema{Columns: api.ColumnsOf(reflect.TypeFor[R]()), Metadata: metadata}
}

// SendRows emits the rows of a table of numbers, total rows in all.
func SendRows[R any](ctx context.Context, rows iter.Seq[R], total int64, emit func(api.Event) error) error {
	const most = 40_000 // rows of about 50 bytes
	var part []R
	var done int64
	for row := range rows {
		if part, done = append(part, row), done+1; len(part) < most && done < total {
			continue
		}
		if err := emit(api.Event{Batch: api.RowsBatch(part), Meta: api.Done(done, total)}); err != nil {
			return err
		}
		if part = part[:0]; ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// Price returns the size in bytes of n rows of schema s, or TOO_LARGE if it exceeds the limit.
func Price(limit int64, s api.Schema, n int64) (int64, error) {
	size := s.RowBytes()
	hi, lo := bits.Mul64(uint64(n), uint64(size))
	if hi != 0 || lo > uint64(limit) {
		return 0, api.Errorf(api.TooLarge, "The reply would have %d rows of %d bytes", n, size).
			WithHint("At most %d bytes a request; ask for fewer rows at a time.", limit)
	}
	return int64(lo), nil
}

// NewPricedJob returns the job that sends a number of rows of schema s, or TOO_LARGE if they exceed the limit.
func NewPricedJob(limit int64, s api.Schema, rows int64, run func(context.Context, func(api.Event) error) error,
) (*api.Job, error) {
	bytes, err := Price(limit, s, rows)
	return &api.Job{Schema: s, Rows: rows, Bytes: bytes, Run: run}, err
}

// RowsPerBatch returns how many rows make about that many bytes.
func RowsPerBatch(s api.Schema, bytes int64) int {
	return int(max(1, bytes/max(1, s.RowBytes())))
}
