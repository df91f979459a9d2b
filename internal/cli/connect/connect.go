package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/base/folderlock"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// DataOption names the data folder.
var DataOption = command.Option{
	Name: "data", Default: "data",
	Usage: "`folder` of models, schedules, bases, datasets and runs",
}

// FolderOptions are those of every command that works on a data folder.
var FolderOptions = []command.Option{
	DataOption,
	{
		Name:      "server",
		Usage:     "`address` of the server that does the work: HOST:PORT, unix:PATH or grpc+tls://HOST:PORT",
		Otherwise: "the server of the data folder, if there is one, else this process",
	},
	{Name: "token", Usage: "`token` for the server"},
	{
		Name:  "tls_ca",
		Usage: "PEM `file` of the authorities that the server's certificate may be of", Otherwise: "the system's",
	},
	{Name: "client_cert", Usage: "PEM `file` of this client's certificate, for servers with --client-ca"},
	{Name: "client_key", Usage: "PEM `file` of its key"},
	DeviceOption,
}

// patience is how long a command waits for a folder in use: for a server that starts, or another command that ends.
const patience = 5 * time.Second

// WithServer calls f with a connection to the server of the data folder: that of --server; else the one that serves the
// folder; else one in this process, for the length of f.
func WithServer(ctx context.Context, e command.Env, f func(*client.Client) error) error {
	return WithServerIn(ctx, e, nil, f)
}

// WithServerIn is WithServer in the first process of a world, whose others train with it: no other server does. The world may
// be nil.
func WithServerIn(ctx context.Context, e command.Env, w *processes.World, f func(*client.Client) error) error {
	remote := func(location string) error {
		if w != nil {
			return fmt.Errorf("%d processes train in themselves, and %s is a server; end it, or start one process", w.Size(),
				location)
		}
		return withRemote(ctx, e, location, f)
	}
	if at := e.Text("server"); at != "" {
		return remote(LocationOf(at))
	}
	var last folderlock.Holder
	for end := time.Now().Add(patience); ; {
		lock, err := LockFolder(e)
		var held *folderlock.Held
		switch {
		case err == nil:
			return withOwn(ctx, e, lock, w, f)
		case !errors.As(err, &held):
			return err
		case held.Address != "" && held.Holder == last: // no remains of a process that was killed a moment ago
			return remote(held.Address)
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

// LockFolder takes the lock of the data folder. Where it is missing, serve makes it, and commands that store something
// make the one that nobody has named.
func LockFolder(e command.Env) (*folderlock.Lock, error) {
	dir := e.Text("data")
	switch makes := e.Text("listen") != "" || e.Stores && !e.Given("data"); {
	case makes:
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
	case !command.Exists(dir):
		return nil, fmt.Errorf("the data folder %q does not exist; choose another --data, or make it with "+
			"`anisoflight serve --data %s` or mkdir", dir, dir)
	}
	return folderlock.Acquire(dir, e.Cmd.CommandPath())
}

// withRemote connects to a running server.
func withRemote(ctx context.Context, e command.Env, location string, f func(*client.Client) error) error {
	own := []command.Option{DeviceOption, MemoryLimitOption, MeasurePeakOption, PrecisionOption}
	for _, o := range append(own, GPUOptions...) {
		if e.Cmd.Flags().Changed(o.Flag()) {
			e.Log.Warn("the server has a device of its own: --"+o.Flag()+" is not used", "server", location)
		}
	}
	secure, err := clientTLS(e)
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, location, client.Options{Token: e.Text("token"), TLS: secure})
	if err != nil {
		if command.IsCode(err, api.NoToken) {
			return fmt.Errorf("%s: %s; give it with --token or ANISOFLIGHT_TOKEN", location, command.Plain(err))
		}
		return err
	}
	return errors.Join(f(c), c.Close())
}

// clientTLS returns the configuration of connections to locations grpc+tls.
func clientTLS(e command.Env) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := e.Text("tls_ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-ca: %s holds no certificate in PEM", file)
		}
	}
	if cert, key := e.Text("client_cert"), e.Text("client_key"); cert+key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("--client-cert, --client-key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// withOwn serves the data folder in this process, for itself alone.
func withOwn(ctx context.Context, e command.Env, lock *folderlock.Lock, w *processes.World,
	f func(*client.Client) error,
) (err error) {
	eng, err := OpenEngine(ctx, e, lock, w)
	if err != nil {
		return err
	}
	// The runs' states are stored even after an interrupt.
	kept := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, eng.Release(kept)) }()
	listener := bufconn.Listen(1 << 20)
	server := flight.New(eng, flight.Config{Logger: e.Log})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		err = errors.Join(err, <-served)
	}()
	c, err := client.Dial(kept, "grpc://this-process", client.Options{Dial: listener.DialContext})
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// LocationOf returns the location of an address as --listen takes it; a location stays what it is.
func LocationOf(address string) string {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return flight.UnixLocation(strings.TrimPrefix(path, "//"))
	}
	if strings.Contains(address, "://") {
		return address
	}
	return "grpc://" + address
}
