package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
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
	{Name: "token", Secret: true, Usage: "`token` for the server"},
	{
		Name:  "tls_ca",
		Usage: "PEM `file` of the authorities that the server's certificate may be of", Otherwise: "the system's",
	},
	{Name: "client_cert", Usage: "PEM `file` of this client's certificate, for servers with --client-ca"},
	{Name: "client_key", Usage: "PEM `file` of its key"},
	DeviceOption,
}

// Connection is a client of the server that works on the data folder.
type Connection struct {
	*client.Client
	Location string
}

// worldKey is that of a context's world.
type worldKey struct{}

// Among returns a context under which the engine of this process trains with the processes of a world, whose first it
// is; no other server does.
func Among(ctx context.Context, w *processes.World) context.Context {
	return context.WithValue(ctx, worldKey{}, w)
}

// worldOf returns the world of a context; nil where it has none.
func worldOf(ctx context.Context) *processes.World {
	w, _ := ctx.Value(worldKey{}).(*processes.World)
	return w
}

// patience is how long a command waits for a folder in use: for a server that starts, or another command that ends.
const patience = 5 * time.Second

// WithServer calls f with a connection to the server of the data folder: that of --server; else the one that serves the
// folder; else one in this process, for the length of f.
func WithServer(ctx context.Context, e command.Env, f func(Connection) error) error {
	if at := e.Text("server"); at != "" {
		return withRemote(ctx, e, LocationOf(at), f)
	}
	var last catalog.Holder
	for end := time.Now().Add(patience); ; {
		lock, err := LockFolder(e)
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

// LockFolder takes the lock of the data folder. Where it is missing, serve makes it, and commands that store something
// make the one that nobody has named.
func LockFolder(e command.Env) (*catalog.Lock, error) {
	dir := e.Text("data")
	switch makes := e.Text("listen") != "" || e.Stores && !e.Get("data").Given; {
	case makes:
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
	case !command.Exists(dir):
		return nil, fmt.Errorf("the data folder %q does not exist; %schoose another --data, or make it with "+
			"`anisoflight serve --data %s` or mkdir", dir, folderBeside(dir), dir)
	}
	return catalog.Acquire(dir, e.Cmd.CommandPath())
}

// folderBeside asks after the folder with the nearest name, if there is one.
func folderBeside(dir string) string {
	parent, base := filepath.Split(filepath.Clean(dir))
	entries, err := os.ReadDir(filepath.Clean(parent))
	if err != nil {
		return ""
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, entry.Name())
		}
	}
	if near := suggest.Nearest(base, folders); near != "" {
		return fmt.Sprintf("did you mean %q? Else ", parent+near)
	}
	return ""
}

// withRemote connects to a running server.
func withRemote(ctx context.Context, e command.Env, location string, f func(Connection) error) error {
	if w := worldOf(ctx); w != nil {
		return fmt.Errorf("%d processes train in themselves, and %s is a server; end it, or start one process", w.Size(),
			location)
	}
	for _, v := range e.Values {
		if v.Local && strings.HasPrefix(v.Source, "flag ") {
			e.Log.Warn("the server has a device of its own: --"+v.Flag()+" is not used", "server", location)
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
	return errors.Join(f(Connection{c, location}), c.Close())
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

// withOwn serves the data folder in this process, on a socket that this user alone can reach.
func withOwn(ctx context.Context, e command.Env, lock *catalog.Lock, f func(Connection) error) (err error) {
	eng, err := OpenEngine(ctx, e, lock)
	if err != nil {
		return err
	}
	// The runs' states are stored even after an interrupt.
	kept := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, eng.Release(kept)) }()
	dir, release, err := temporary(e.Cmd.CommandPath())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	listener, err := flight.Listen(ctx, "unix:"+filepath.Join(dir, "socket"))
	if err != nil {
		return err
	}
	server := flight.New(eng, flight.Config{Logger: e.Log})
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
	return errors.Join(f(Connection{c, location}), c.Close())
}

// LocationOf returns the location of an address as --listen takes it; a location stays what it is.
func LocationOf(address string) string {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "grpc+unix://" + path
	}
	if strings.Contains(address, "://") {
		return address
	}
	return "grpc://" + address
}

const (
	// temporaryPrefix heads the names of temporary folders, the Python package's among them.
	temporaryPrefix = "anisoflight-"
	// fresh is how long such a folder is left alone, since its maker may not have locked it yet.
	fresh = time.Minute
)

// temporary makes a folder that this user alone can read, until release. It is locked as a data folder is, so that the
// next process removes the folder of one that was killed: such folders go first.
func temporary(program string) (dir string, release func() error, err error) {
	sweepTemporary(program)
	if dir, err = os.MkdirTemp("", temporaryPrefix); err != nil {
		return "", nil, err
	}
	lock, err := catalog.Acquire(dir, program)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Release()) }, nil
}

// sweepTemporary removes the temporary folders of this user whose processes have ended without doing so. What cannot be
// removed stays.
func sweepTemporary(program string) {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*")) // the pattern is good
	for _, dir := range found {
		if !abandoned(dir) {
			continue
		}
		if lock, err := catalog.Acquire(dir, program); err == nil {
			_ = os.RemoveAll(dir)
			_ = lock.Release()
		}
	}
}

// abandoned reports whether a path is a temporary folder of this user which is not fresh: one that nobody uses, unless
// it is locked.
func abandoned(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || time.Since(info.ModTime()) < fresh {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return false
	}
	_, err = os.Lstat(filepath.Join(dir, catalog.LockFile))
	return err == nil
}
