package flight

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
)

// begin counts a call in, unless the server drains or its caller has too many.
func (s *Server) begin(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := c.who.key
	if s.draining.Load() {
		return errDraining()
	}
	switch n := s.active[who]; {
	case who == noToken && n >= maxNoToken:
		return api.Errorf(api.Busy, "%d calls without a token are under way", n).
			WithHint("Send a token, or wait for one to end.")
	case n >= s.cfg.MaxCalls:
		return api.Errorf(api.Busy, "%d of your calls are under way", n).WithHint("Wait for one to end.")
	}
	s.active[who]++
	return nil
}

// watch counts a call among those that watch, from when it is known to be one: nobody waits for its end.
func (s *Server) watch(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := c.who.key
	if n := s.watching[who]; n >= s.cfg.MaxCalls {
		return api.Errorf(api.Busy, "%d of your calls watch runs", n).WithHint("Wait for one to end.")
	}
	c.watches, c.unwatch = true, context.AfterFunc(s.last, c.cancel)
	s.watching[who]++
	s.leave(who)
	return nil
}

// end counts a call out.
func (s *Server) end(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := c.who.key
	if !c.watches {
		s.leave(who)
		return
	}
	c.unwatch()
	if s.watching[who]--; s.watching[who] == 0 {
		delete(s.watching, who)
	}
}

// leave counts an active call out. The last one of a draining server is what Shutdown waits for.
func (s *Server) leave(who string) {
	if s.active[who]--; s.active[who] == 0 {
		delete(s.active, who)
	}
	if len(s.active) == 0 && s.draining.Load() {
		close(s.idle)
	}
}

// underWay returns the number of calls under way, those that watch among them.
func (s *Server) underWay() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, calls := range []map[string]int{s.active, s.watching} {
		for _, of := range calls {
			n += of
		}
	}
	return n
}
