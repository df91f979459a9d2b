package flight

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
)

// guardedServer is a server with one token of each scope, by its scope's name.
func guardedServer(t *testing.T, cfg Config) (*testServer, map[api.Scope]string) {
	t.Helper()
	tokens, lines := map[api.Scope]string{}, ""
	for _, scope := range []api.Scope{api.ReadScope, api.SampleScope, api.TrainScope, api.AdminScope} {
		token, line, err := auth.NewToken("only-"+string(scope), []api.Scope{scope})
		if err != nil {
			t.Fatal(err)
		}
		tokens[scope], lines = token, lines+line+"\n"
	}
	known, err := auth.ParseTokens([]byte(lines))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Tokens = func() *auth.Tokens { return known }
	return serve(t, cfg), tokens
}

// with returns a context whose calls have headers authorization.
func with(ctx context.Context, authorization ...string) context.Context {
	for _, a := range authorization {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", a)
	}
	return ctx
}

// everyCall returns a function for each call of Flight, which makes the call and returns its error.
func everyCall(s *testServer) map[string]func(context.Context) error {
	descriptor := &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(`{"op":"Sample","rows":1}`)}
	opened := func(d *flight.FlightDescriptor, stream interface {
		Send(*flight.FlightData) error
		CloseSend() error
		RecvMsg(any) error
	}, err error,
	) error {
		if err != nil {
			return err
		}
		_ = stream.Send(&flight.FlightData{FlightDescriptor: d})
		_ = stream.CloseSend()
		return stream.RecvMsg(&flight.FlightData{})
	}
	return map[string]func(context.Context) error{
		"Handshake": func(ctx context.Context) error { return errorOf(rest(s.client.Handshake(ctx))) },
		"ListFlights": func(ctx context.Context) error {
			return errorOf(rest(s.client.ListFlights(ctx, &flight.Criteria{})))
		},
		"ListActions": func(ctx context.Context) error {
			return errorOf(rest(s.client.ListActions(ctx, &flight.Empty{})))
		},
		"GetFlightInfo":  func(ctx context.Context) error { return errorOf(s.client.GetFlightInfo(ctx, descriptor)) },
		"GetSchema":      func(ctx context.Context) error { return errorOf(s.client.GetSchema(ctx, descriptor)) },
		"PollFlightInfo": func(ctx context.Context) error { return errorOf(s.client.PollFlightInfo(ctx, descriptor)) },
		"DoGet": func(ctx context.Context) error {
			return errorOf(rest(s.client.DoGet(ctx, &flight.Ticket{Ticket: descriptor.Cmd})))
		},
		"DoExchange": func(ctx context.Context) error {
			stream, err := s.client.DoExchange(ctx)
			return opened(descriptor, stream, err)
		},
		"DoPut": func(ctx context.Context) error {
			stream, err := s.client.DoPut(ctx)
			return opened(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"datasets", "x"}}, stream, err)
		},
		"DoAction": func(ctx context.Context) error { return s.doAction(ctx, "ListModels") },
	}
}

func errorOf(_ any, err error) error { return err }

// TestEveryCallNeedsAToken: without a token, or with a wrong one, no call is served.
func TestEveryCallNeedsAToken(t *testing.T) {
	s, tokens := guardedServer(t, Config{})
	wrong := map[string][]string{
		"no token":     nil,
		"unknown":      {"Bearer aniso_wrong"},
		"empty":        {"Bearer "},
		"not a bearer": {"Basic " + tokens[api.AdminScope]},
		"as the user":  {basic(tokens[api.AdminScope], "")},
		"no password":  {"Basic " + base64.StdEncoding.EncodeToString([]byte(tokens[api.AdminScope]))},
		"no scheme":    {tokens[api.AdminScope]},
		"two":          {"Bearer " + tokens[api.AdminScope], "Bearer " + tokens[api.ReadScope]},
	}
	for what, headers := range wrong {
		for name, call := range everyCall(s) {
			code, begin := codes.Unauthenticated, "[NO_TOKEN] "
			if name == "Handshake" && headers == nil { // it asks how to send one
				code, begin = codes.Unimplemented, "[UNIMPLEMENTED] "
			}
			wantStatus(t, name+", "+what, call(with(t.Context(), headers...)), code, begin)
		}
	}
	if n := s.fake.working.Load(); n != 0 || len(s.fake.stored) != 0 {
		t.Errorf("%d operations at work, %v stored", n, s.fake.stored)
	}
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// TestHandshake: a token that is sent as the password of any user is returned as the header for later calls. A server
// without tokens accepts every password, and the header that it returns.
func TestHandshake(t *testing.T) {
	guarded, tokens := guardedServer(t, Config{})
	for what, s := range map[string]*testServer{"tokens": guarded, "no tokens": serve(t, Config{})} {
		for _, scope := range []api.Scope{api.ReadScope, api.SampleScope} {
			ctx, err := s.client.AuthenticateBasicToken(t.Context(), "anyone", tokens[scope])
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			err = s.doAction(ctx, "ListModels")
			if allowed := scope == api.ReadScope || s != guarded; allowed != (err == nil) {
				t.Errorf("%s, %s: %v", what, scope, err)
			}
		}
	}
	_, err := guarded.client.AuthenticateBasicToken(t.Context(), "anyone", "aniso_wrong")
	wantStatus(t, "a wrong password", err, codes.Unauthenticated, "[NO_TOKEN] The token is not known.")
	if err := guarded.doAction(with(t.Context(), basic("anyone", tokens[api.ReadScope])), "ListModels"); err != nil {
		t.Errorf("Basic on another call: %v", err)
	}
	// arrow-rs and Java send a message, and arrow-rs wants one back
	stream, err := guarded.client.Handshake(with(t.Context(), basic("", tokens[api.ReadScope])))
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&flight.HandshakeRequest{})
	_ = stream.CloseSend()
	if _, err := stream.Recv(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after one message: %v", err)
	}
}

// TestExemptions: only health checks and the action ServerInfo, with exactly these names, need no token.
func TestExemptions(t *testing.T) {
	s, tokens := guardedServer(t, Config{})
	if err := s.doAction(t.Context(), "ServerInfo"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"serverinfo", "ServerInfo ", "ServerInfo\x00", "", "Serverinfo/ListModels"} {
		wantStatus(t, name, s.doAction(t.Context(), name), codes.Unauthenticated, "[NO_TOKEN] ")
	}
	wantStatus(t, "a wrong token", s.doAction(with(t.Context(), "Bearer x"), "ServerInfo"), codes.Unauthenticated,
		"[NO_TOKEN] ")
	conn := dial(t, s.address)
	health := grpc_health_v1.NewHealthClient(conn)
	if _, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	watch, err := health.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		t.Error(err)
	}
	_, err = health.List(t.Context(), &grpc_health_v1.HealthListRequest{})
	wantStatus(t, "health's List", err, codes.Unauthenticated, "[NO_TOKEN] ")
	_, err = health.List(with(t.Context(), "Bearer "+tokens[api.AdminScope]), &grpc_health_v1.HealthListRequest{})
	wantStatus(t, "health's List with a token", err, codes.NotFound, "[OP_NOT_FOUND] ")
	err = conn.Invoke(t.Context(), "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &flight.Empty{},
		&flight.Empty{})
	wantStatus(t, "reflection", err, codes.Unauthenticated, "[NO_TOKEN] ")
}

// TestScopes: a token is valid only for operations of its scopes, in every call.
func TestScopes(t *testing.T) {
	s, tokens := guardedServer(t, Config{})
	needs := map[string]api.Scope{
		"ListFlights": api.ReadScope, "ListActions": api.ReadScope, "GetFlightInfo": api.SampleScope,
		"GetSchema":      api.SampleScope,
		"PollFlightInfo": api.SampleScope, "DoGet": api.SampleScope, "DoExchange": api.SampleScope, "DoPut": api.TrainScope,
		"DoAction": api.ReadScope,
	}
	calls := everyCall(s)
	for name, need := range needs {
		for scope, token := range tokens {
			err := calls[name](with(t.Context(), "Bearer "+token))
			if scope != need {
				wantStatus(t, name+" with "+string(scope), err, codes.PermissionDenied, "[SCOPE] ")
			} else if err != nil && strings.Contains(err.Error(), "[SCOPE]") {
				t.Errorf("%s with %s: %v", name, scope, err)
			}
		}
	}
	for action, need := range map[string]api.Scope{
		"CreateRun": api.TrainScope, "DeleteModel": api.AdminScope,
		"LoadModel": api.AdminScope,
	} {
		for scope, token := range tokens {
			err := s.doAction(with(t.Context(), "Bearer "+token), action)
			if scope == need && err != nil {
				t.Errorf("%s with %s: %v", action, scope, err)
			} else if scope != need {
				wantStatus(t, action+" with "+string(scope), err, codes.PermissionDenied, "[SCOPE] ")
			}
		}
	}
}

// TestLogsHoldNoSecrets: the log has neither tokens nor line breaks from clients.
func TestLogsHoldNoSecrets(t *testing.T) {
	s, tokens := guardedServer(t, Config{})
	s.log = slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	forged := "x\nlevel=ERROR msg=forged\x1b[31m"
	_ = s.doAction(with(t.Context(), "Bearer "+tokens[api.ReadScope]), forged)
	_ = s.doAction(with(t.Context(), "Bearer aniso_guessed"), "ListModels")
	if r := s.get(with(t.Context(), "Bearer "+tokens[api.SampleScope]), t,
		`{"op":"Sample","rows":1,"fail":"panic"}`); r.err == nil {
		t.Error("no panic")
	}
	text := s.logs.String()
	for _, secret := range append([]string{"aniso_guessed", "\nlevel=ERROR msg=forged", "\x1b"}, tokens[api.ReadScope],
		tokens[api.SampleScope]) {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	for _, want := range []string{`msg=forged`, "only-read", "code=Unauthenticated", "msg=panic"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q:\n%s", want, text)
		}
	}
}

// TestCallsOfOneCaller: the active calls of a caller are bounded. Other callers are served, and so is the caller when a
// call has ended.
func TestCallsOfOneCaller(t *testing.T) {
	s, tokens := guardedServer(t, Config{MaxCalls: 2})
	ctx, cancel := context.WithCancel(with(t.Context(), "Bearer "+tokens[api.SampleScope]))
	defer cancel()
	for range 2 {
		go s.get(ctx, t, `{"op":"Sample","rows":1000000,"batch":1,"tick_ms":10}`)
	}
	eventually(t, "start", time.Second, func() bool { return s.fake.working.Load() == 2 })
	wantStatus(t, "a third", s.get(ctx, t, `{"op":"Sample","rows":1}`).err, codes.ResourceExhausted, "[BUSY] ")
	if err := s.doAction(with(t.Context(), "Bearer "+tokens[api.ReadScope]), "ListModels"); err != nil {
		t.Errorf("another caller: %v", err)
	}
	cancel()
	eventually(t, "end", time.Second, func() bool { return s.activeCalls() == 0 })
	if r := s.get(with(t.Context(), "Bearer "+tokens[api.SampleScope]), t, `{"op":"Sample","rows":1}`); r.err != nil {
		t.Error(r.err)
	}
}

// TestCallsWithoutTokenAreFew: calls without a token are bounded, and do not prevent calls with a token.
func TestCallsWithoutTokenAreFew(t *testing.T) {
	s, tokens := guardedServer(t, Config{})
	conn := dial(t, s.address)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range maxNoToken {
		_, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, doAction)
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "beginning", 2*time.Second, func() bool { return s.activeCalls() == maxNoToken })
	wantStatus(t, "one more", s.doAction(t.Context(), openAction), codes.ResourceExhausted,
		"[BUSY] 8 calls without a token are active")
	if err := s.doAction(with(t.Context(), "Bearer "+tokens[api.ReadScope]), openAction); err != nil {
		t.Errorf("with a token: %v", err)
	}
	cancel()
	eventually(t, "end", 2*time.Second, func() bool { return s.activeCalls() == 0 })
	if err := s.doAction(t.Context(), openAction); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}
