package flight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

func withPeers(locations ...string) Config {
	return Config{Peers: func(context.Context) []string { return locations }}
}

// TestPeersDivideARequest: a request is divided at multiples of 64, in order, and the peers take turns.
func TestPeersDivideARequest(t *testing.T) {
	for _, c := range []struct {
		samples, peers int
		sizes          []int
	}{
		{512, 2, []int{64, 64, 64, 64, 64, 64, 64, 64}},
		{1, 2, []int{1}},
		{100, 3, []int{64, 36}},
		{1000, 1, []int{256, 256, 256, 232}},
	} {
		var peers []string
		for i := range c.peers {
			peers = append(peers, fmt.Sprintf("grpc://gpu%d:8815", i))
		}
		s := serve(t, withPeers(peers...))
		info, err := s.client.GetFlightInfo(t.Context(), cmd(fmt.Sprintf(`{"op":"Sample","rows":%d,"size":3}`, c.samples)))
		if err != nil {
			t.Fatal(err)
		}
		if !info.GetOrdered() || info.GetTotalRecords() != int64(c.samples) {
			t.Errorf("info %v", info)
		}
		var sizes, indices []int
		for i, e := range info.GetEndpoint() {
			var request fakeRequest
			if err := json.Unmarshal(e.GetTicket().GetTicket(), &request); err != nil {
				t.Fatal(err)
			}
			if sizes = append(sizes, request.Rows); request.Size != 3 {
				t.Errorf("part %d lost a field: %s", i, e.GetTicket().GetTicket())
			}
			var at []string
			for _, l := range e.GetLocation() {
				at = append(at, l.GetUri())
			}
			turned := slices.Concat(peers[i%c.peers:], peers[:i%c.peers])
			if !slices.Equal(at, turned) {
				t.Errorf("part %d is at %v, want %v", i, at, turned)
			}
			r := s.get(t.Context(), t, string(e.GetTicket().GetTicket()))
			if r.err != nil {
				t.Fatal(r.err)
			}
			for _, index := range r.indices() {
				indices = append(indices, int(index))
			}
		}
		if !slices.Equal(sizes, c.sizes) {
			t.Errorf("%d samples of %d peers: parts of %v, want %v", c.samples, c.peers, sizes, c.sizes)
		}
		for i, index := range indices {
			if i != index {
				t.Fatalf("row %d has the index %d", i, index)
			}
		}
	}
}

// TestWithoutPeersThereIsOneEndpoint: without peers, or if a request cannot be divided, there is one endpoint without
// locations.
func TestWithoutPeersThereIsOneEndpoint(t *testing.T) {
	for body, cfg := range map[string]Config{
		`{"op":"Sample","rows":500}`:   withPeers(),
		`{"op":"WatchRun","rows":500}`: withPeers("grpc://a:1", "grpc://b:1"),
	} {
		s := serve(t, cfg)
		info, err := s.client.GetFlightInfo(t.Context(), cmd(body))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(info.GetEndpoint()); n != 1 || len(info.GetEndpoint()[0].GetLocation()) != 0 {
			t.Errorf("%s: endpoints %v", body, info.GetEndpoint())
		}
	}
}
