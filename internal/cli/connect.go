package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
)

var dataOption = option{name: "data", def: "data", usage: "`folder` of models, schedules, bases, datasets and runs"}

// folderOptions are those of every command that works on a data folder.
var folderOptions = []option{
	dataOption,
	{name: "server", usage: "`address` of the server that does the work: HOST:PORT, unix:PATH or grpc+tls://HOST:PORT (default: the server of the data folder, if there is one, else this process)"},
	{name: "token", secret: true, usage: "`token` for the server"},
	{name: "tls_ca", usage: "PEM `file` of the authorities that the server's certificate may be of (default: the system's)"},
	{name: "client_cert", usage: "PEM `file` of this client's certificate, for servers with --client-ca"},
	{name: "client_key", usage: "PEM `file` of its key"},
	deviceOption,
}

// connection is a client of the server that works on the data folder.
type connection struct {
	*client.Client
	location string
}

// connectionKey is that of a context's connection.
type connectionKey struct{}

// patience is how long a command waits for a folder in use: for a server that starts, or another command that ends.
const patience = 5 * time.Second

// withServer calls f with a connection to the server of the data folder: that of --server; else the one that serves the
// folder; else one in this process, for the length of f. Under a context that has a connection, as the commands of a
// recipe's stages run, it is that one.
func withServer(ctx context.Context, e env, f func(connection) error) error {
	if c, ok := ctx.Value(connectionKey{}).(connection); ok {
		return f(c)
	}
	if at := e.text("server"); at != "" {
		return withRemote(ctx, e, locationOf(at), f)
	}
	var last catalog.Holder
	for end := time.Now().Add(patience); ; {
		lock, err := lockFolder(e)
		var held *catalog.Held
		switch {
		case err == nil:
			return withOwn(ctx, e, lock, f)
		case !errors.As(err, &held):
			return err
		case held.Address != "" && held.Holder == last: // no remains of a process that was killed a moment ago
			return withRemote(ctx, e, held.Address, f)
		case held.Address == "" && time.Now().After(end):
			return held
		}
		last = held.Holder
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lockFolder takes the lock of the data folder, which commands that store something make if it is missing.
func lockFolder(e env) (*catalog.Lock, error) {
	dir := e.text("data")
	if e.stores {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
	} else if !exists(dir) {
		return nil, fmt.Errorf("the data folder %q does not exist; choose another --data, or make it with anisoflight serve", dir)
	}
	return catalog.Acquire(dir, e.cmd.CommandPath())
}

// withRemote connects to a running server.
func withRemote(ctx context.Context, e env, location string, f func(connection) error) error {
	for _, v := range e.values {
		if v.local && strings.HasPrefix(v.source, "flag ") {
			e.log.Warn("the server has a device of its own: --"+v.flag()+" is not used", "server", location)
		}
	}
	secure, err := clientTLS(e)
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, location, client.Options{Token: e.text("token"), TLS: secure})
	if err != nil {
		if isCode(err, api.NoToken) {
			return fmt.Errorf("%s: %s; give it with --token or ANISOFLIGHT_TOKEN", location, plain(err))
		}
		return err
	}
	return errors.Join(f(connection{c, location}), c.Close())
}

// clientTLS returns the configuration of connections to locations grpc+tls.
func clientTLS(e env) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := e.text("tls_ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-ca: %s holds no certificate in PEM", file)
		}
	}
	if cert, key := e.text("client_cert"), e.text("client_key"); cert+key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("--client-cert, --client-key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// withOwn serves the data folder in this process, on a socket that this user alone can reach.
func withOwn(ctx context.Context, e env, lock *catalog.Lock, f func(connection) error) (err error) {
	eng, err := openEngine(ctx, e, lock)
	if err != nil {
		return err
	}
	// The runs' states are stored even after an interrupt.
	kept := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, eng.close(kept)) }()
	dir, err := os.MkdirTemp("", "anisoflight-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	listener, err := flight.Listen(ctx, "unix:"+filepath.Join(dir, "socket"))
	if err != nil {
		return err
	}
	server := flight.New(eng, flight.Config{Logger: e.log})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		err = errors.Join(err, <-served)
	}()
	location := flight.Location(listener, false)
	c, err := client.Dial(kept, location, client.Options{})
	if err != nil {
		return err
	}
	return errors.Join(f(connection{c, location}), c.Close())
}

// locationOf returns the location of an address as --listen takes it; a location stays what it is.
func locationOf(address string) string {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "grpc+unix://" + path
	}
	if strings.Contains(address, "://") {
		return address
	}
	return "grpc://" + address
}
