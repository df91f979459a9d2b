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

// FolderOptions are the options of every command that works on a data folder.
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
		Usage: "PEM `file` of the authorities that may sign the server's certificate", Otherwise: "the system's",
	},
	{Name: "client_cert", Usage: "PEM `file` of this client's certificate, for servers with --client-ca"},
	{Name: "client_key", Usage: "PEM `file` of the key of --client-cert"},
	DeviceOption,
}

// A command waits for a locked folder for patience: until a server listens, or another command ends. It waits for a
// server that is ending for endPatience.
const (
	patience    = 5 * time.Second
	endPatience = 45 * time.Second
)

// AwaitFolder is LockFolder for a server: it waits while another is ending. A server whose client was killed may still
// give its address for a moment.
func AwaitFolder(ctx context.Context, e command.Env) (*folderlock.Lock, error) {
	said := false
	return lockWhile(ctx, e, func(held *folderlock.InUseError, waited time.Duration) bool {
		if held.Ending && !said {
			said = true
			e.Log.Warn("waiting for the server of the data folder, which is ending", "pid", held.PID)
		}
		return held.Ending && waited <= endPatience || waited <= time.Second
	})
}

// lockWhile is LockFolder that waits for a locked folder as long as wait returns true.
func lockWhile(
	ctx context.Context, e command.Env, wait func(held *folderlock.InUseError, waited time.Duration) bool,
) (*folderlock.Lock, error) {
	for start := time.Now(); ; {
		lock, err := LockFolder(e)
		if held, ok := errors.AsType[*folderlock.InUseError](err); !ok || !wait(held, time.Since(start)) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// WithServer calls f with a connection to the server of --server, else to the server of the data folder, else to one in
// this process that ends with f.
func WithServer(ctx context.Context, e command.Env, f func(*client.Client) error) error {
	return WithServerIn(ctx, e, nil, f)
}

// WithServerIn is WithServer in the first process of the world w, whose processes train together: it refuses every
// server except its own. If w is nil it is WithServer.
func WithServerIn(ctx context.Context, e command.Env, w *processes.World, f func(*client.Client) error) error {
	remote := func(location string) error {
		if w != nil {
			return fmt.Errorf("%d processes cannot train on the server %s; stop the server, or start one process", w.Size(),
				location)
		}
		return withRemote(ctx, e, location, f)
	}
	if server := e.Text("server"); server != "" {
		return remote(LocationOf(server))
	}
	var seen folderlock.Holder
	known := false
	lock, err := lockWhile(ctx, e, func(held *folderlock.InUseError, waited time.Duration) bool {
		known = held.Address != "" && held.Holder == seen // the first read may give the remains of a killed process
		seen = held.Holder
		return !known && (held.Address != "" || waited <= patience || held.Ending && waited <= endPatience)
	})
	switch {
	case known:
		return remote(seen.Address)
	case err != nil:
		return err
	}
	return withLocal(ctx, e, lock, w, f)
}

// LockFolder takes the lock of the data folder. If the folder is missing, serve makes it; other commands that store
// something make only the default one.
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
	local := []command.Option{DeviceOption, MemoryLimitOption, MeasurePeakOption, PrecisionOption}
	for _, o := range append(local, GPUOptions...) {
		if e.Cmd.Flags().Changed(o.Flag()) {
			e.Log.Warn("the server has its own device: --"+o.Flag()+" is not used", "server", location)
		}
	}
	secure, err := clientTLS(e)
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, location, client.Options{Token: e.Text("token"), TLS: secure})
	if err != nil {
		if command.IsCode(err, api.NoToken) {
			return fmt.Errorf("%s: %s; give it with --token or ANISOFLIGHT_TOKEN", location, command.ErrorText(err))
		}
		return err
	}
	return errors.Join(f(c), c.Close())
}

// clientTLS returns the TLS configuration for locations grpc+tls.
func clientTLS(e command.Env) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := e.Text("tls_ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-ca: %s holds no certificate in PEM format", file)
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

// withLocal calls f with a connection to a server of the data folder in this process.
func withLocal(ctx context.Context, e command.Env, lock *folderlock.Lock, w *processes.World,
	f func(*client.Client) error,
) (err error) {
	eng, err := OpenEngine(ctx, e, lock, w)
	if err != nil {
		return err
	}
	uninterrupted := context.WithoutCancel(ctx) // stores the runs even after an interrupt
	defer func() { err = errors.Join(err, eng.Release(uninterrupted)) }()
	listener := bufconn.Listen(1 << 20)
	server := flight.New(eng, flight.Config{Logger: e.Log})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		err = errors.Join(err, <-served)
	}()
	c, err := client.Dial(uninterrupted, "grpc://this-process", client.Options{Dial: listener.DialContext})
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// LocationOf returns the location of an address in the form of --listen. It returns a location unchanged.
func LocationOf(address string) string {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return flight.UnixLocation(strings.TrimPrefix(path, "//"))
	}
	if strings.Contains(address, "://") {
		return address
	}
	return "grpc://" + address
}
