package engine

import (
	"encoding/json"
	"strconv"

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

// modelMetadata is what every reply that a model gave carries.
func modelMetadata(m *catalog.Model, op string, request any) map[string]string {
	return metadata(op, request, "model", m.Name, "version", itoa(m.Version), "weights", m.Hash)
}

func itoa(n int) string { return strconv.Itoa(n) }
