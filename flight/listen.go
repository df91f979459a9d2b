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

// Listen opens HOST:PORT or unix:PATH. A socket file is readable and writable by its owner alone; one that a dead
// server left behind is replaced.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		return new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	path = strings.TrimPrefix(path, "//")
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return nil, fmt.Errorf("the path of a socket must have at most %d bytes, got %d: choose a shorter one than %s", most,
			len(path), path)
	}
	if err := removeDeadSocket(ctx, path); err != nil {
		return nil, err
	}
	// The mode of the socket becomes that of the file, so that there is no moment in which others could connect; systems
	// that do not allow it have the file's mode changed right after.
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

// removeDeadSocket removes a socket file that nobody listens on.
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

// Location returns the address of a listener as Flight clients write it, such as grpc://127.0.0.1:8815.
func Location(l net.Listener, tls bool) string {
	switch {
	case l.Addr().Network() == "unix":
		return UnixLocation(l.Addr().String())
	case tls:
		return "grpc+tls://" + l.Addr().String()
	}
	return "grpc://" + l.Addr().String()
}

// UnixLocation returns the location of a socket's path, as a URI has it.
func UnixLocation(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return "grpc+unix://" + (&url.URL{Path: path}).EscapedPath()
}

// Local reports whether an address is reached from this machine alone.
func Local(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}
