package serve

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
)

// TestPeersOfAName are all its addresses, in order; a name that cannot be asked after has none.
func TestPeersOfAName(t *testing.T) {
	p := &peers{
		locations: []string{"grpc+unix:///run/own"}, scheme: "grpc+tls://", log: slog.New(slog.DiscardHandler),
		names: []hostPort{{"gone", "1"}, {"headless", "8815"}},
		lookup: func(_ context.Context, host string) ([]string, error) {
			if host == "gone" {
				return nil, errors.New("no such host")
			}
			return []string{"10.0.0.9", "10.0.0.2", "fd00::1", "10.0.0.2"}, nil
		},
	}
	want := []string{
		"grpc+unix:///run/own", "grpc+tls://10.0.0.2:8815", "grpc+tls://10.0.0.9:8815", "grpc+tls://[fd00::1]:8815",
	}
	if got := p.get(t.Context()); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
