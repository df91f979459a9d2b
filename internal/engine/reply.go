package engine

import (
	"encoding/json"
	"math/bits"
	"strconv"

	"github.com/anisoflight/anisoflight/base/normalization"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
)

// metadata makes the text that travels in a reply's schema: the operation, the request with every default resolved, and
// pairs of key and value.
func metadata(op string, request any, pairs ...string) map[string]string {
	m := map[string]string{"op": op}
	if text, err := json.Marshal(request); err == nil {
		m["request"] = string(text)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// normalized returns the pair that tells of values in units of their own, and nothing of images in [−1, 1].
func normalized(n *normalization.Affine) []string {
	if n == nil {
		return nil
	}
	return []string{"normalization", n.String()}
}

// modelMetadata is what every reply that a model gave carries.
func modelMetadata(m *catalog.Model, op string, request any) map[string]string {
	own := normalized(m.Shape.Normalization)
	return metadata(op, request, append(own, "model", m.Name, "version", itoa(m.Version), "weights", m.Hash)...)
}

func itoa(n int) string { return strconv.Itoa(n) }

// price returns the bytes of rows rows under s, or TOO_LARGE where they exceed the limit.
func (e *Engine) price(s api.Schema, rows int64) (int64, error) {
	size := s.RowBytes()
	hi, lo := bits.Mul64(uint64(rows), uint64(size))
	if hi != 0 || lo > uint64(e.cfg.MaxBytes) {
		return 0, api.Errorf(api.TooLarge, "The reply would have %d rows of %d bytes", rows, size).
			WithHint("At most %d bytes a request; ask for fewer rows at a time.", e.cfg.MaxBytes)
	}
	return int64(lo), nil
}

// rowsPerBatch returns how many rows make about so many bytes.
func rowsPerBatch(s api.Schema, bytes int64) int {
	return int(max(1, bytes/max(1, s.RowBytes())))
}
