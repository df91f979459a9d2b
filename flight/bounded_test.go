package flight

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestBounded: connections beyond the bound hear so at once, and a place that is given back is taken again.
func TestBounded(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = Bounded(l, 2)
	defer l.Close()
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	dial()
	dial()
	first, second := <-accepted, <-accepted
	third := dial()
	_ = third.SetReadDeadline(time.Now().Add(2 * time.Second))
	if _, err := third.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the third connection: %v", err)
	}
	_ = first.Close()
	_ = first.Close() // counts once
	dial()
	<-accepted
	_ = second.Close()
	if n := l.(*bounded).open.Load(); n != 1 {
		t.Errorf("%d open, want 1", n)
	}
}
