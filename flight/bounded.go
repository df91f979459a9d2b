package flight

import (
	"net"
	"sync"
	"sync/atomic"
)

// Bounded returns l with at most so many connections at a time: those beyond are closed at once, so that their clients
// hear of it instead of waiting. 0 or less is no bound.
func Bounded(l net.Listener, most int) net.Listener {
	if most <= 0 {
		return l
	}
	return &bounded{Listener: l, most: int64(most)}
}

type bounded struct {
	net.Listener
	most int64
	open atomic.Int64
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= b.most {
			return &counted{Conn: c, from: b}, nil
		}
		b.open.Add(-1)
		_ = c.Close()
	}
}

// counted is a connection that gives its place back when it is closed.
type counted struct {
	net.Conn
	from *bounded
	once sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() { c.from.open.Add(-1) })
	return c.Conn.Close()
}
