package flight

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
)

// admit finds out who calls before anything of the call is read, and refuses whoever may not call at all.
func (s *Server) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	var who *caller
	err := recovered(s.log, func() (err error) { // it runs in the connection's goroutine
		who, err = s.identify(ctx, info.Header)
		return err
	})
	if err == nil && who.Principal == nil && info.FullMethodName != doAction && info.FullMethodName != handshake {
		err = errNoToken()
	}
	if err != nil && info.FullMethodName != healthCheck && info.FullMethodName != healthWatch {
		return ctx, s.refuse(ctx, info.FullMethodName, err)
	}
	return context.WithValue(ctx, callerKey{}, who), nil
}

// identify finds the principal of a call: that of its token, or on servers without tokens everyone, by the
// certificate's name or else by the connection. A wrong token is an error even where none is needed.
func (s *Server) identify(ctx context.Context, header metadata.MD) (*caller, error) {
	who := &caller{key: connectionOf(ctx)}
	if s.cfg.Tokens == nil {
		if name := certificateName(ctx); name != "" {
			who.key = "certificate " + name
		}
		who.Principal = auth.Anyone(who.key)
		return who, nil
	}
	who.key = noToken
	token, given, err := tokenOf(header)
	if err != nil || !given {
		return who, err
	}
	if who.Principal = s.cfg.Tokens().Find(token); who.Principal == nil {
		return who, api.Errorf(api.NoToken, "The token is not known").
			WithHint("Ask for a new one, or remove it from the headers.")
	}
	who.key = "token " + who.Name
	return who, nil
}

// tokenOf reads the header authorization: the token, or a user of any name whose password it is.
func tokenOf(header metadata.MD) (token string, given bool, err error) {
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
	if token, ok := passwordOf(header); ok {
		return token, true, nil
	}
	return "", true, api.Errorf(api.NoToken, "The header authorization is not understood").
		WithHint("Send \"authorization: Bearer TOKEN\" once.")
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

// authorize reads the first message of a call: which operation it wants, whether its caller may have it, and then what
// is asked of it. Messages of no type of Flight's are refused. Those of a handshake ask for nothing.
func (c *call) authorize(req any) error {
	if _, ok := req.(*flight.HandshakeRequest); ok {
		return nil
	}
	w, err := c.wanted(req)
	c.op = w.name
	switch {
	case err != nil:
		return err
	case c.who.Principal == nil && (w.way != api.ByAction || w.name != openAction):
		return errNoToken()
	case w.way == 0: // what is stored, and ListActions
		return c.mayHave(api.ReadScope)
	}
	op, err := c.server.table.Find(w.way, w.name)
	if err != nil {
		return err
	}
	if w.name != openAction {
		if err := c.mayHave(op.Scope); err != nil {
			return err
		}
	}
	if w.way == api.ByAction {
		if w.message, err = api.ReadMessage(w.body); err != nil {
			return err
		}
	}
	if c.asked, err = op.Call(w.message); err != nil || !op.Watches || c.cancel == nil {
		return err
	}
	return c.server.watch(c)
}

func (c *call) mayHave(need api.Scope) error {
	if c.who.May(need) {
		return nil
	}
	return api.Errorf(api.ScopeMissing, "The token of %q lacks the scope %s", c.who.Name, need)
}

// wanted is what the first message of a call wants.
type wanted struct {
	way     api.Way // 0: no operation
	name    string
	body    []byte
	message api.Message // the body, read; not yet of an action, whose name stands outside
}

// wanted finds the operation that a message names.
func (c *call) wanted(req any) (w wanted, err error) {
	switch r := req.(type) {
	case *flight.Action:
		w = wanted{way: api.ByAction, name: r.GetType(), body: r.GetBody()}
	case *flight.Ticket:
		w = wanted{way: api.ByGet, body: r.GetTicket()}
	case *flight.FlightDescriptor:
		if r.GetType() == flight.DescriptorPATH {
			return w, nil
		}
		w = wanted{way: api.ByGet, body: r.GetCmd()}
	case *flight.FlightData:
		if w, err = streamed(c.method, r.GetFlightDescriptor()); err != nil {
			return w, err
		}
	case *flight.Criteria, *flight.Empty:
		return w, nil
	default:
		return w, api.Errorf(api.OpNotFound, "The call is not served")
	}
	if most := c.server.cfg.MaxRequestBytes; len(w.body) > most {
		return w, api.Errorf(api.TooLarge, "The request has more than %d bytes", most)
	}
	if w.way == api.ByAction {
		return w, nil
	}
	if w.message, err = api.ReadMessage(w.body); err == nil {
		w.name, err = w.message.Op()
	}
	return w, err
}

// streamed says what the descriptor of a client's stream wants: a command, or to upload a data set to a path.
func streamed(method string, d *flight.FlightDescriptor) (wanted, error) {
	w := wanted{way: api.ByPut, body: d.GetCmd()}
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
		return w, api.Errorf(api.BadRequest, "Nothing can be uploaded to the path %q", path).
			WithHint("Upload data sets to [\"datasets\", name]; schedules and bases with the commands PutSchedule and PutBasis.")
	default:
		var err error
		w.body, err = json.Marshal(map[string]string{"op": "PutDataset", "name": path[1]})
		return w, err
	}
}
