package flight

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/anisoflight/anisoflight/flight/api"
)

// service implements Flight's calls: handshake.go, actions.go, get.go, exchange.go, put.go and info.go.
type service struct {
	flight.BaseFlightServer
	server *Server
}

// PollFlightInfo is not served: GetFlightInfo answers at once.
func (s *service) PollFlightInfo(context.Context, *flight.FlightDescriptor) (*flight.PollInfo, error) {
	return nil, api.Errorf(api.Unimplemented, "PollFlightInfo is not served here").WithHint("Call GetFlightInfo.")
}

// Sizes of messages and of the results of actions.
const (
	maxResultBytes = 3584 << 10 // 3.5 MiB: what a Go client takes by default, with room to spare
	framingBytes   = 16 << 10   // of that, for the description of a message
)

// rowsPerMessage returns how many rows of a schema fit into a message: 3.5 MiB, or more at the client's wish.
func rowsPerMessage(s api.Schema, wish int64) int {
	return rowsWithin(s, max(wish, maxResultBytes-framingBytes))
}

// rowsWithin returns how many rows fit into so many bytes, at least one.
func rowsWithin(s api.Schema, bytes int64) int { return int(max(1, bytes/max(1, s.RowBytes()))) }
