package auth

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// ServerTLS returns the configuration of a server with TLS 1.2 or later. It reads PEM files that may change while the
// server runs: the certificate chain, its key, and, unless clientCA is empty, the authorities that must have signed the
// clients' certificates.
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
		return nil, fmt.Errorf("auth: TLS needs a certificate and its key, got %q and %q", cert, key)
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

// Watched is a value read from files that are read again when they change.
type Watched[T any] struct {
	log   *slog.Logger
	load  func() (T, error)
	paths []string

	mu     sync.Mutex
	value  T
	hashes [][sha256.Size]byte
	looked time.Time
}

// lookEvery is the least time between two looks at the files. Get looks at them.
const lookEvery = time.Second

// Watch loads a value from the files at paths. Get loads it again if a file has changed.
func Watch[T any](log *slog.Logger, load func() (T, error), paths ...string) (*Watched[T], error) {
	w := &Watched[T]{log: log, load: load, paths: paths, looked: time.Now()}
	w.hashes = w.look()
	var err error
	w.value, err = load()
	return w, err
}

// Get returns the value. If changed files are invalid, it logs an error once and returns the previous value.
func (w *Watched[T]) Get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.looked) < lookEvery {
		return w.value
	}
	w.looked = time.Now()
	now := w.look()
	if slices.Equal(now, w.hashes) {
		return w.value
	}
	w.hashes = now
	value, err := w.load()
	if err != nil {
		w.log.Error("changed files are invalid; the previous ones stay in use", "files", w.paths, "error", err)
		return w.value
	}
	w.log.Info("changed files were read", "files", w.paths)
	w.value = value
	return value
}

// look returns the hashes of the files' contents: size and time of a file may stay when it is replaced. What cannot be
// read, and a pipe, which can be read only once, has the zero hash.
func (w *Watched[T]) look() [][sha256.Size]byte {
	hashes := make([][sha256.Size]byte, len(w.paths))
	for i, path := range w.paths {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if content, err := os.ReadFile(path); err == nil {
			hashes[i] = sha256.Sum256(content)
		}
	}
	return hashes
}
