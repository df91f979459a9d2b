package flight

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
)

// The methods that need no token, in full: health checks, and DoAction, which needs one for every action but openAction.
const (
	healthCheck = "/grpc.health.v1.Health/Check"
	healthWatch = "/grpc.health.v1.Health/Watch"
	doAction    = flightService + "DoAction"
	openAction  = "ServerInfo"
)

// caller is who makes a call.
type caller struct {
	*auth.Principal        // nil if the call came without a token
	key             string // whom limits and turns at the device are counted for
}

// Callers without a token, on a server with tokens, are counted as one, and have a few calls at a time: gRPC reads the
// whole of a request before anybody knows whether it is one for openAction.
const (
	strangers    = "strangers"
	maxStrangers = 8
)

type callerKey struct{}

// callerOf gives the caller that admit found; without one nothing is allowed.
func callerOf(ctx context.Context) *caller {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{}
}

// admit finds out who calls before anything of the call is read, and refuses whoever may not call at all.
func (s *Server) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	who, err := s.identify(ctx, info.Header)
	if err == nil && who.Principal == nil && info.FullMethodName != doAction {
		err = errNoToken()
	}
	if err != nil && info.FullMethodName != healthCheck && info.FullMethodName != healthWatch {
		return ctx, s.refuse(ctx, info.FullMethodName, err)
	}
	return context.WithValue(ctx, callerKey{}, who), nil
}

// identify finds the principal of a call: that of its token, or on servers without tokens everyone, by the certificate's
// name or else by the connection. A wrong token is an error even where none is needed.
func (s *Server) identify(ctx context.Context, header metadata.MD) (*caller, error) {
	who := &caller{key: connectionOf(ctx)}
	if s.cfg.Tokens == nil {
		if name := certificateName(ctx); name != "" {
			who.key = "certificate " + name
		}
		who.Principal = auth.Anyone(who.key)
		return who, nil
	}
	who.key = strangers
	token, given, err := bearer(header)
	if err != nil || !given {
		return who, err
	}
	if who.Principal = s.cfg.Tokens().Find(token); who.Principal == nil {
		return who, api.Errorf(api.NoToken, "The token is not known").WithHint("Ask for a new one, or remove it from the headers.")
	}
	who.key = "token " + who.Name
	return who, nil
}

// bearer reads the header authorization.
func bearer(header metadata.MD) (token string, given bool, err error) {
	values := header.Get("authorization")
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		scheme, token, ok := strings.Cut(values[0], " ")
		if ok && strings.EqualFold(scheme, "Bearer") {
			return token, true, nil
		}
	}
	return "", true, api.Errorf(api.NoToken, "The header authorization is not understood").WithHint("Send \"authorization: Bearer TOKEN\" once.")
}

func errNoToken() error {
	return api.Errorf(api.NoToken, "The call has no token").WithHint("Send the header \"authorization: Bearer TOKEN\".")
}

// certificateName gives the common name of the client's certificate, if it has one.
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

// authorize decides whether who may make the request, whose type tells the call. Requests of other types are nobody's. It
// gives the operation's name, where there is one.
func authorize(who *caller, req any, most int) (op string, err error) {
	if op, err = operationOf(req, most); err != nil {
		return op, err
	}
	if _, isAction := req.(*flight.Action); isAction && op == openAction {
		return op, nil
	}
	if who.Principal == nil {
		return op, errNoToken()
	}
	need, err := scopeOf(req, op)
	if err != nil || who.May(need) {
		return op, err
	}
	return op, api.Errorf(api.Scope, "The token of %q lacks the scope %s", who.Name, need)
}

// operationOf gives the operation that a request names, empty for calls that describe what is stored.
func operationOf(req any, most int) (op string, err error) {
	var text []byte
	switch r := req.(type) {
	case *flight.Action:
		if len(r.GetBody()) > most {
			return r.GetType(), requestTooLarge(most)
		}
		return r.GetType(), nil
	case *flight.Ticket:
		text = r.GetTicket()
	case *flight.FlightDescriptor:
		if r.GetType() == flight.DescriptorPATH {
			return "", nil
		}
		text = r.GetCmd()
	case *flight.FlightData:
		d := r.GetFlightDescriptor()
		switch {
		case d == nil:
			return "", errNoDescriptor()
		case d.GetType() == flight.DescriptorPATH:
			return "PutDataset", nil
		}
		text = d.GetCmd()
	default:
		return "", nil
	}
	if len(text) > most {
		return "", requestTooLarge(most)
	}
	return api.Op(text)
}

// scopeOf gives the scope that a request needs.
func scopeOf(req any, op string) (auth.Scope, error) {
	if op != "" {
		if slices.ContainsFunc(api.Operations(), func(o api.Operation) bool { return o.Name == op }) {
			return auth.ScopeOf(op), nil
		}
		if _, isAction := req.(*flight.Action); isAction {
			return "", opNotFound("action", op)
		}
		return "", opNotFound("operation", op)
	}
	switch req.(type) {
	case *flight.FlightDescriptor, *flight.Criteria, *flight.Empty: // what is stored, and ListActions
		return auth.Read, nil
	case *flight.Action:
		return "", opNotFound("action", op)
	}
	return "", api.Errorf(api.OpNotFound, "The call is not served")
}

func errNoDescriptor() error {
	return api.Errorf(api.BadRequest, "The stream has no descriptor").WithHint("Send a command or a path with the first message.")
}

func requestTooLarge(most int) error {
	return api.Errorf(api.TooLarge, "The request has more than %d bytes", most)
}
