package serve

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"
)

// TestPeersOfAName are all its addresses, in order; they are asked for again after a while, and kept where nobody
// answers.
func TestPeersOfAName(t *testing.T) {
	addresses, failure := []string{"10.0.0.9", "10.0.0.2", "fd00::1", "10.0.0.2"}, error(nil)
	asked := 0
	p := &peers{
		locations: []string{"grpc+unix:///run/own"}, names: []hostPort{{"headless", "8815"}}, scheme: "grpc+tls://",
		log: slog.New(slog.DiscardHandler),
		lookup: func(_ context.Context, host string) ([]string, error) {
			if asked++; host != "headless" {
				t.Errorf("asked for %s", host)
			}
			return slices.Clone(addresses), failure
		},
	}
	want := []string{
		"grpc+unix:///run/own", "grpc+tls://10.0.0.2:8815", "grpc+tls://10.0.0.9:8815", "grpc+tls://[fd00::1]:8815",
	}
	for range 2 {
		if got := p.get(t.Context()); !slices.Equal(got, want) || asked != 1 {
			t.Errorf("%v after %d questions, want %v", got, asked, want)
		}
	}
	p.until, failure = time.Time{}, errors.New("no such host")
	if got := p.get(t.Context()); !slices.Equal(got, want) {
		t.Errorf("%v while the name cannot be asked after, want %v", got, want)
	}
	p.until, failure, addresses = time.Time{}, nil, []string{"10.0.0.3"}
	want = []string{"grpc+unix:///run/own", "grpc+tls://10.0.0.3:8815"}
	if got := p.get(t.Context()); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
