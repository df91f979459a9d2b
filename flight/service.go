package flight

import (
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/anisoflight/anisoflight/flight/api"
)

// service implements Flight's calls: actions.go, get.go, exchange.go, put.go and info.go.
type service struct {
	flight.BaseFlightServer
	server *Server
}

// command reads a ticket or a descriptor's command: the operation and its request, which is the same JSON.
func command(text []byte) (op string, body json.RawMessage, err error) {
	op, err = api.Op(text)
	return op, text, err
}

// Sizes of messages and of the results of actions.
const (
	maxResultBytes = 3584 << 10 // 3.5 MiB: what a Go client takes by default, with room to spare
	framingBytes   = 16 << 10   // of that, for the description of a message
)

// rowsPerMessage gives how many rows of a schema fit into a message: 3.5 MiB, or more if the request asks for it by
// batch_bytes.
func rowsPerMessage(s api.Schema, body []byte) int {
	var asked struct {
		BatchBytes int64 `json:"batch_bytes"`
	}
	_ = json.Unmarshal(body, &asked) // the engine has refused bad requests already
	return rowsWithin(s, max(asked.BatchBytes, maxResultBytes-framingBytes))
}

// rowsWithin gives how many rows fit into so many bytes, at least one.
func rowsWithin(s api.Schema, bytes int64) int { return int(max(1, bytes/max(1, s.RowBytes()))) }
