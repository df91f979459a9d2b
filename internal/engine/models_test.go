package engine

import (
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Every operation of the contract is served in exactly the ways that it lists, and nothing else is.
func TestOperationsAreAllServed(t *testing.T) {
	e := open(t)
	for _, op := range api.Operations() {
		h := e.handlers[op.Name]
		for way, served := range map[api.Way]bool{
			api.ByAction: h.action != nil || h.job != nil && op.By(api.ByAction), api.ByGet: h.job != nil,
			api.ByExchange: h.exchange != nil, api.ByPut: h.upload != nil,
		} {
			if served != op.By(way) {
				t.Errorf("%s is served as an %s: %v, listed: %v", op.Name, way, served, op.By(way))
			}
		}
		if h.job != nil != op.Rows && h.exchange == nil {
			t.Errorf("%s gives rows: %v, listed: %v", op.Name, h.job != nil, op.Rows)
		}
	}
	for name := range e.handlers {
		if api.Operations().Named(name) == nil {
			t.Errorf("%s is served and not listed", name)
		}
	}
}

// Every handler takes the requests that its operation makes: else the assertion of their type panics.
func TestHandlersTakeTheirRequests(t *testing.T) {
	e := open(t)
	for name, h := range e.handlers {
		req := api.Operations().Named(name).New()
		api.SetDefaults(req)
		if r, ok := req.(*api.OfferNetwork); ok { // handlers see requests that are valid
			r.Shape = []int{1, 1, 1}
		}
		if h.action != nil && name != "MakeSchedule" { // which has a request for each kind
			_, _ = h.action(t.Context(), req, func(api.Meta) {})
		}
		if h.job != nil {
			_, _ = h.job(t.Context(), req)
		}
		if h.exchange != nil {
			_, _ = h.exchange(t.Context(), req, api.Schema{})
		}
		if h.upload != nil {
			_, _ = h.upload(t.Context(), req, api.Schema{})
		}
	}
}

func TestBusy(t *testing.T) {
	dir := t.TempDir()
	e := reopen(t, dir, Config{MaxRequests: 1, MaxWatchers: 2})
	sample, watch := api.Operations().Named("Sample"), api.Operations().Named("WatchRun")
	leave, err := e.enter(sample)
	if err != nil {
		t.Fatal(err)
	}
	refuse(t, e, "ListModels", "", api.Busy) // second
	act(t, e, "ServerInfo", "")
	leave()
	act(t, e, "ListModels", "")

	// Those that watch have a bound of their own and keep nobody from working.
	for range 2 {
		if _, err := e.enter(watch); err != nil {
			t.Fatal(err)
		}
	}
	_, err = e.enter(watch)
	wantCode(t, "a third watcher", err, api.Busy)
	act(t, e, "ListModels", "")
}
