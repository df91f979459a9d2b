package flightbench

import (
	"context"
	"io"
	"net"
	"time"
)

// bareTCP sends so many bytes over the loopback interface, written and read in pieces of 1 MiB.
func bareTCP(ctx context.Context, bytes int) (time.Duration, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			sent <- err
			return
		}
		defer c.Close()
		piece := make([]byte, 1<<20)
		for left := bytes; left > 0 && err == nil; {
			var n int
			n, err = c.Write(piece[:min(left, len(piece))])
			left -= n
		}
		sent <- err
	}()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	piece := make([]byte, 1<<20)
	started := time.Now()
	for left := bytes; left > 0; {
		n, err := c.Read(piece[:min(left, len(piece))])
		if err != nil && err != io.EOF {
			return 0, err
		}
		left -= n
	}
	return time.Since(started), <-sent
}

// memcpy copies so many bytes, batch by batch.
func memcpy(from [blocks][]float32, bytes int) time.Duration {
	to := make([]float32, len(from[0]))
	copy(to, from[0]) // the pages are there
	started := time.Now()
	for i := range bytes / batchBytes {
		copy(to, from[i%blocks])
	}
	return time.Since(started)
}
