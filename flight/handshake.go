package flight

import (
	"encoding/base64"
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/metadata"

	"github.com/anisoflight/anisoflight/flight/api"
)

// anyToken is what a server without tokens answers, which takes every token.
const anyToken = "none"

// Handshake answers the header "authorization: Basic ..." with the header that the client sends from then on,
// "authorization: Bearer TOKEN". The password is the token, which admit has checked.
func (s *service) Handshake(stream flight.FlightService_HandshakeServer) error {
	header, _ := metadata.FromIncomingContext(stream.Context())
	token, basic := passwordOf(header)
	if !basic {
		return api.Errorf(api.Unimplemented, "A handshake needs the header \"authorization: Basic ...\"").
			WithHint("Give any user, with the token as the password, or send \"authorization: Bearer TOKEN\" with every call.")
	}
	if s.server.cfg.Tokens == nil {
		token = anyToken
	}
	if err := stream.SetHeader(metadata.Pairs("authorization", "Bearer "+token)); err != nil {
		return err
	}
	for { // pyarrow takes a stream that ends before its own side for broken
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return transportErrorOrNil(stream.Send(&flight.HandshakeResponse{}))
		} else if err != nil {
			return err
		}
	}
}

// passwordOf reads a header authorization of the scheme Basic: base64 of user:password.
func passwordOf(header metadata.MD) (password string, ok bool) {
	values := header.Get("authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, text, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", false
	}
	pair, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "=")) // arrow-go does not pad
	if err != nil {
		return "", false
	}
	_, password, ok = strings.Cut(string(pair), ":")
	return password, ok
}
