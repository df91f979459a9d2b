package flight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Listen opens HOST:PORT or unix:PATH. Only the owner of a socket file can read and write it. Listen replaces the
// socket file of a dead server.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		return new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	path = strings.TrimPrefix(path, "//")
	if limit := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > limit {
		return nil, fmt.Errorf("the path of a socket must have at most %d bytes, got %d: %s", limit, len(path), path)
	}
	if err := removeDeadSocket(ctx, path); err != nil {
		return nil, err
	}
	// The file gets the mode of the socket, so that others can never connect. On systems without Fchmod for sockets,
	// Chmod follows right after.
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeDeadSocket removes a socket file that no process listens on.
func removeDeadSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket: choose another path", path)
	}
	if c, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
		_ = c.Close()
		return fmt.Errorf("another server listens on %s", path)
	}
	return os.Remove(path)
}

// Location returns the Flight location of a listener, such as grpc://127.0.0.1:8815.
func Location(l net.Listener, tls bool) string {
	switch {
	case l.Addr().Network() == "unix":
		return UnixLocation(l.Addr().String())
	case tls:
		return "grpc+tls://" + l.Addr().String()
	}
	return "grpc://" + l.Addr().String()
}

// UnixLocation returns the Flight location of a socket file, a URI.
func UnixLocation(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return "grpc+unix://" + (&url.URL{Path: path}).EscapedPath()
}

// Local reports whether only this machine can reach an address.
func Local(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}
