package auth

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// ServerTLS makes the TLS configuration of a server, 1.2 or later, from PEM files that may change while it serves: its
// certificate chain and key, and, unless empty, the authorities whose certificates clients must have.
func ServerTLS(cert, key, clientCA string, log *slog.Logger) (*tls.Config, error) {
	paths := []string{cert, key}
	if clientCA != "" {
		paths = append(paths, clientCA)
	}
	watched, err := Watch(log, func() (*tls.Config, error) { return readTLS(cert, key, clientCA) }, paths...)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return watched.Get(), nil },
	}, nil
}

func readTLS(cert, key, clientCA string) (*tls.Config, error) {
	if cert == "" || key == "" {
		return nil, fmt.Errorf("auth: TLS needs a certificate and its key: %q and %q are given", cert, key)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("auth: certificate %s with key %s: %w", cert, key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	if clientCA == "" {
		return c, nil
	}
	authorities, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("auth: %s holds no certificate", clientCA)
	}
	return c, nil
}

// Watched is a value read from files, which are read again when they change.
type Watched[T any] struct {
	log   *slog.Logger
	load  func() (T, error)
	paths []string

	mu     sync.Mutex
	value  T
	stamps []stamp
	looked time.Time
}

// stamp distinguishes one state of a file from the next.
type stamp struct {
	size     int64
	modified time.Time
}

// lookEvery is how often the files are looked at, at most: they are looked at when the value is asked for.
const lookEvery = time.Second

// Watch loads a value, and again whenever one of the files has changed.
func Watch[T any](log *slog.Logger, load func() (T, error), paths ...string) (*Watched[T], error) {
	w := &Watched[T]{log: log, load: load, paths: paths, looked: time.Now()}
	w.stamps = w.look()
	var err error
	w.value, err = load()
	return w, err
}

// Get returns the value. Files that cannot be read, or hold something else, leave it as it is, which is logged once for
// each change.
func (w *Watched[T]) Get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.looked) < lookEvery {
		return w.value
	}
	w.looked = time.Now()
	now := w.look()
	if slices.EqualFunc(now, w.stamps, func(a, b stamp) bool { return a.size == b.size && a.modified.Equal(b.modified) }) {
		return w.value
	}
	w.stamps = now
	value, err := w.load()
	if err != nil {
		w.log.Error("changed files are not taken over", "files", w.paths, "error", err)
		return w.value
	}
	w.log.Info("changed files are taken over", "files", w.paths)
	w.value = value
	return value
}

// look returns the files' stamps; a missing file has the zero stamp.
func (w *Watched[T]) look() []stamp {
	stamps := make([]stamp, len(w.paths))
	for i, path := range w.paths {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return stamps
}
