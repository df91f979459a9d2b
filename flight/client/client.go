package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/anisoflight/anisoflight/flight/wire"
)

// Options configure a client. The zero value of each field means its default.
type Options struct {
	// Token is a bearer token; default none. White space around it does not count. It is not encrypted: use TLS or a
	// loopback address.
	Token           string
	TLS             *tls.Config // for locations grpc+tls; default the system's authorities
	MaxMessageBytes int         // maximum bytes of a received message; default 128 MiB
	// Dial connects to the server; default to the address of the location
	Dial func(context.Context) (net.Conn, error)
}

// Client is a connection to a server. Its methods may be called concurrently.
type Client struct {
	conn    *grpc.ClientConn
	service flight.FlightServiceClient
}

// Dial connects to a Flight location: grpc://HOST:PORT, grpc+tls://HOST:PORT or grpc+unix:///PATH. It returns when the
// server has replied, or with an error, at the latest when ctx ends.
func Dial(ctx context.Context, location string, o Options) (*Client, error) {
	target, secure, err := parseLocation(location)
	if err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	if secure {
		transport = credentials.NewTLS(o.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithInitialWindowSize(4 << 20),
		grpc.WithInitialConnWindowSize(8 << 20),
		grpc.WithWriteBufferSize(wire.WriteBuffer),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(wire.Codec{}),
			grpc.MaxCallRecvMsgSize(cmp.Or(o.MaxMessageBytes, 128<<20)),
			grpc.MaxCallSendMsgSize(1<<31-1),
		),
	}
	if o.Dial != nil {
		dial := func(ctx context.Context, _ string) (net.Conn, error) { return o.Dial(ctx) }
		options = append(options, grpc.WithContextDialer(dial))
	}
	if token := strings.TrimSpace(o.Token); token != "" {
		if i := strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
			return nil, fmt.Errorf("client: the token must be visible ASCII characters without spaces; character %d is not",
				i+1)
		}
		options = append(options, grpc.WithPerRPCCredentials(bearer(token)))
	}
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn, service: flight.NewFlightServiceClient(conn)}
	if _, err := c.ServerInfo(ctx); err != nil {
		var s interface{ GRPCStatus() *status.Status }
		if errors.As(err, &s) {
			err = errors.New("no server answers: " + s.GRPCStatus().Message() + proxyHint(target))
		}
		return nil, errors.Join(fmt.Errorf("client: %s: %w", location, err), conn.Close())
	}
	return c, nil
}

// Close ends the connection and all its calls.
func (c *Client) Close() error { return c.conn.Close() }

// parseLocation returns gRPC's name of a location's target, and whether it uses TLS.
func parseLocation(location string) (target string, secure bool, err error) {
	scheme, rest, ok := strings.Cut(location, "://")
	switch {
	case !ok:
	case scheme == "grpc", scheme == "grpc+tcp":
		return "passthrough:///" + rest, false, nil
	case scheme == "grpc+tls":
		return "passthrough:///" + rest, true, nil
	case scheme == "grpc+unix":
		path, err := url.PathUnescape(rest)
		return "unix:" + (&url.URL{Path: path}).EscapedPath(), false, err
	}
	return "", false, fmt.Errorf("client: the location must begin with grpc://, grpc+tls:// or grpc+unix://, got %q",
		location)
}

// proxyHint returns a hint if gRPC uses a proxy for a target, else nothing.
func proxyHint(target string) string {
	to := &url.URL{Scheme: "https", Host: strings.TrimPrefix(target, "passthrough:///")}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: to}); err != nil || proxy == nil {
		return ""
	}
	return "; HTTPS_PROXY is set: if the proxy does not lead to the server, name its host in NO_PROXY"
}

// bearer is a token that is sent with every call.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. Loopback and Unix sockets need no TLS; for other
// locations it is the caller's choice.
func (b bearer) RequireTransportSecurity() bool { return false }
