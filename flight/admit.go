package flight

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
)

const (
	flightService = "/arrow.flight.protocol.FlightService/"
	doPut         = flightService + "DoPut"
	doExchange    = flightService + "DoExchange"

	// Health checks, Handshake and the action openAction need no token.
	healthCheck = "/grpc.health.v1.Health/Check"
	healthWatch = "/grpc.health.v1.Health/Watch"
	handshake   = flightService + "Handshake"
	doAction    = flightService + "DoAction"
	openAction  = "ServerInfo"
)

// maxRequestBytes bounds the JSON of a request. A request reserves jsonFactor times its bytes, which parsing it may
// take.
const (
	maxRequestBytes = 16 << 20
	jsonFactor      = 32
)

// admit identifies the caller before the server reads the call, and refuses a caller without the token that the call
// needs. It runs in the connection's goroutine.
func (s *Server) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := s.newCall(info.FullMethodName)
	err := recovered(s.log, func() error { return c.identify(ctx, info.Header) })
	if err == nil && c.principal == nil && c.method != doAction && c.method != handshake {
		err = errNoToken()
	}
	if err != nil && c.method != healthCheck && c.method != healthWatch {
		return ctx, c.finish(err)
	}
	return context.WithValue(ctx, callKey{}, c), nil
}

// identify sets the caller and the principal of a call. The principal is that of the token. On a server without tokens
// it has all scopes and the name of the client's certificate, else of the connection. A wrong token is an error even if
// the call needs none.
func (c *call) identify(ctx context.Context, header metadata.MD) error {
	tokens := c.server.cfg.Tokens
	if tokens == nil {
		c.caller, _ = ctx.Value(connectionKey{}).(string)
		if name := certificateName(ctx); name != "" {
			c.caller = "certificate " + name
		}
		c.principal = &auth.Principal{Name: c.caller, Scopes: api.Scopes}
		return nil
	}
	c.caller = noToken
	token, _, err := tokenOf(header)
	if err != nil || token == nil {
		return err
	}
	if c.principal = tokens().Find(*token); c.principal == nil {
		return api.Errorf(api.NoToken, "The token is not known").
			WithHint("Ask for a new one, or remove it from the headers.")
	}
	c.caller = "token " + c.principal.Name
	return nil
}

// tokenOf returns the token of the header authorization: a bearer token, or, of the scheme Basic, which is base64 of
// user:password, the password of any user. Without the header the token is nil.
func tokenOf(header metadata.MD) (token *string, basic bool, err error) {
	values := header.Get("authorization")
	if len(values) == 0 {
		return nil, false, nil
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	switch {
	case !ok || len(values) > 1:
	case strings.EqualFold(scheme, "Bearer"):
		text = strings.TrimSpace(text)
		return &text, false, nil
	case strings.EqualFold(scheme, "Basic"):
		pair, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "=")) // arrow-go does not pad
		if _, password, ok := strings.Cut(string(pair), ":"); ok && err == nil {
			return &password, true, nil
		}
	}
	return nil, false, api.Errorf(api.NoToken, "The header authorization cannot be read").
		WithHint("Send \"authorization: Bearer TOKEN\" once.")
}

// Handshake answers the header "authorization: Basic ..." with the header that the client must send with later calls,
// "authorization: Bearer TOKEN". The token is the password, which admit has checked, and "none" on a server without
// tokens.
func (s *service) Handshake(stream flight.FlightService_HandshakeServer) error {
	header, _ := metadata.FromIncomingContext(stream.Context())
	token, basic, err := tokenOf(header)
	if err != nil || !basic {
		return api.Errorf(api.Unimplemented, "A handshake needs the header \"authorization: Basic ...\"").
			WithHint("Give any user, with the token as the password, or send \"authorization: Bearer TOKEN\" with every call.")
	}
	if s.server.cfg.Tokens == nil {
		*token = "none"
	}
	if err := stream.SetHeader(metadata.Pairs("authorization", "Bearer "+*token)); err != nil {
		return err
	}
	for { // pyarrow needs the server to end the stream last
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return transportError(stream.Send(&flight.HandshakeResponse{}))
		} else if err != nil {
			return err
		}
	}
}

func errNoToken() error {
	return api.Errorf(api.NoToken, "The call has no token").WithHint("Send the header \"authorization: Bearer TOKEN\".")
}

// certificateName returns the common name of the client's certificate, if it has one.
func certificateName(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return ""
	}
	return info.State.VerifiedChains[0][0].Subject.CommonName
}

// authorize reads the first message of a call: it finds the operation, checks that the caller has its scope, and then
// decodes the request. It refuses messages that are not Flight's. A handshake has no request.
func (c *call) authorize(ctx context.Context, req any) error {
	w, err := c.parseTarget(req)
	c.op = w.name
	switch {
	case err != nil:
		return err
	case w.way == 0 && c.method == handshake:
		return nil
	case c.principal == nil && (w.way != api.ByAction || w.name != openAction):
		return errNoToken()
	case c.principal == nil && len(w.body) > noTokenBytes:
		return api.Errorf(api.TooLarge, "A request without a token may have %d bytes, got %d", noTokenBytes, len(w.body))
	}
	if err := c.reserveBytes(ctx, jsonFactor*int64(proto.Size(req.(proto.Message)))); err != nil {
		return err
	}
	if w.way == 0 { // ListFlights, ListActions, and a path
		return c.needScope(api.ReadScope)
	}
	if w.way != api.ByAction {
		if w.message, err = api.ReadMessage(w.body); err != nil {
			return err
		}
		if c.op, err = w.message.Op(); err != nil {
			return err
		}
	}
	op, err := c.server.table.Find(w.way, c.op)
	if err != nil {
		return err
	}
	if op.Name != openAction {
		if err := c.needScope(op.Scope); err != nil {
			return err
		}
	}
	if w.way == api.ByAction {
		if w.message, err = api.ReadMessage(w.body); err != nil {
			return err
		}
	}
	if c.request, err = op.Call(w.message); err != nil || !op.Watches || c.cancel == nil {
		return err
	}
	return c.watch()
}

func (c *call) needScope(scope api.Scope) error {
	if c.principal.May(scope) {
		return nil
	}
	return api.Errorf(api.ScopeMissing, "The token of %q does not have the scope %s", c.principal.Name, scope)
}

// requestTarget is the request in the first message of a call.
type requestTarget struct {
	way     api.Way // 0: not an operation
	name    string  // of an action; other requests have it in the body
	body    []byte
	message api.Message
}

// parseTarget returns the request in a message.
func (c *call) parseTarget(req any) (w requestTarget, err error) {
	switch r := req.(type) {
	case *flight.Action:
		w = requestTarget{way: api.ByAction, name: r.GetType(), body: r.GetBody()}
	case *flight.Ticket:
		w = requestTarget{way: api.ByGet, body: r.GetTicket()}
	case *flight.FlightDescriptor:
		if r.GetType() != flight.DescriptorPATH {
			w = requestTarget{way: api.ByGet, body: r.GetCmd()}
		}
	case *flight.FlightData:
		w, err = streamTarget(c.method, r.GetFlightDescriptor())
	case *flight.Criteria, *flight.Empty, *flight.HandshakeRequest:
	default:
		err = api.Errorf(api.OpNotFound, "The server does not know this call")
	}
	if err == nil && len(w.body) > maxRequestBytes {
		err = api.Errorf(api.TooLarge, "The request has more than %d bytes", maxRequestBytes)
	}
	return w, err
}

// streamTarget returns the request of a client's stream: its descriptor is a command, or the path of a data set to
// upload.
func streamTarget(method string, d *flight.FlightDescriptor) (requestTarget, error) {
	w := requestTarget{way: api.ByPut, body: d.GetCmd()}
	if method == doExchange {
		w.way = api.ByExchange
	}
	switch path := pathOf(d); {
	case d == nil:
		return w, api.Errorf(api.BadRequest, "The stream has no descriptor").
			WithHint("Send a command or a path with the first message.")
	case d.GetType() != flight.DescriptorPATH:
		return w, nil
	case w.way == api.ByExchange:
		return w, api.Errorf(api.BadRequest, "An exchange needs a command").WithHint("Such as {\"op\":\"Denoise\",...}.")
	case len(path) != 2 || path[0] != "datasets":
		return w, api.Errorf(api.BadRequest, "The path of an upload must be [\"datasets\", name], got %q", path).
			WithHint("Upload schedules and bases with the commands PutSchedule and PutBasis.")
	default:
		var err error
		w.body, err = json.Marshal(map[string]string{"op": "PutDataset", "name": path[1]})
		return w, err
	}
}
