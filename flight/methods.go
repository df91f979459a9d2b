package flight

const flightService = "/arrow.flight.protocol.FlightService/"

// methods are Flight's calls.
var methods = []string{
	"Handshake", "ListFlights", "GetFlightInfo", "PollFlightInfo", "GetSchema", "DoGet", "DoPut",
	"DoExchange", "DoAction", "ListActions",
}

// The methods that need no token, in full: health checks, Handshake, which answers how to send one, and DoAction, which
// needs one for every action but openAction.
const (
	healthCheck = "/grpc.health.v1.Health/Check"
	healthWatch = "/grpc.health.v1.Health/Watch"
	handshake   = flightService + "Handshake"
	doAction    = flightService + "DoAction"
	openAction  = "ServerInfo"
)

// The calls whose clients stream. That of doExchange may be silent for as long as it likes, once it has said what it
// wants.
const (
	doPut      = flightService + "DoPut"
	doExchange = flightService + "DoExchange"
)

// streams reports whether the clients of a method stream.
func streams(method string) bool {
	return method == doPut || method == doExchange || method == handshake
}
