package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/certtest"
)

func TestTokens(t *testing.T) {
	token, line, err := NewToken("notebook", []api.Scope{api.ReadScope, api.SampleScope})
	if err != nil {
		t.Fatal(err)
	}
	again, other, err := NewToken("ci", []api.Scope{api.AdminScope})
	if err != nil || again == token {
		t.Fatalf("%v; the same token twice: %v", err, again == token)
	}
	if strings.Contains(line, token) {
		t.Error("the file's line holds the token")
	}
	tokens, err := ParseTokens([]byte("# who\n\n" + line + " # mine\r\n" + other))
	if err != nil {
		t.Fatal(err)
	}
	p := tokens.Find(token)
	if p == nil || p.Name != "notebook" || !p.May(api.ReadScope) || !p.May(api.SampleScope) || p.May(api.TrainScope) ||
		p.May(api.AdminScope) {
		t.Errorf("%+v", p)
	}
	if p := tokens.Find(again); p == nil || p.Name != "ci" || p.May(api.ReadScope) {
		t.Errorf("%+v", p)
	}
	for _, wrong := range []string{"", token[1:], token + "x", strings.ToUpper(token), "notebook"} {
		if tokens.Find(wrong) != nil {
			t.Errorf("%q is good", wrong)
		}
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	hash := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"ci read":                       "2 words",
		"ci read " + hash + " x":        "4 words",
		"c!i read " + hash:              "a name must be",
		"ci read,write " + hash:         `admin, got "write"`,
		"ci read, " + hash:              `admin, got ""`,
		"ci read " + hash[7:]:           "sha256:",
		"ci read " + hash[:60]:          "sha256:",
		"ci read " + hash[:69]:          "sha256:",
		"\nci read sha256:" + "zz" + "": "line 2",
	} {
		if _, err := ParseTokens([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, _, err := NewToken("a b", []api.Scope{api.ReadScope}); err == nil {
		t.Error("a name of two words")
	}
}

// rewrite replaces a file, and makes sure that its stamp differs and the watcher looks at it.
func rewrite[T any](t *testing.T, w *Watched[T], path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Duration(1+len(text)) * time.Second)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if w != nil {
		w.looked = time.Time{}
	}
}

// TestTokensAreReloaded: a changed file counts at once, a broken or missing one leaves things as they are and is
// logged.
func TestTokensAreReloaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	first, line, _ := NewToken("a", []api.Scope{api.ReadScope})
	second, other, _ := NewToken("b", []api.Scope{api.ReadScope})
	rewrite[*Tokens](t, nil, path, line)
	var logged bytes.Buffer
	w, err := WatchTokens(path, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if w.Get().Find(first) == nil || w.Get().Find(second) != nil {
		t.Error("the first file")
	}
	rewrite(t, w, path, "# revoked\n"+other)
	if w.Get().Find(first) != nil || w.Get().Find(second) == nil {
		t.Error("the second file")
	}
	rewrite(t, w, path, "rubbish")
	if w.Get().Find(second) == nil || !strings.Contains(logged.String(), "files are invalid") {
		t.Errorf("a broken file; logged %s", &logged)
	}
	was, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, w, path, line)
	w.Get()
	rewrite(t, w, path, other)
	if err := os.Chtimes(path, was.ModTime(), was.ModTime()); err != nil {
		t.Fatal(err)
	}
	if w.Get().Find(first) != nil || w.Get().Find(second) == nil {
		t.Error("a file of the same size and time")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.looked = time.Time{}
	if w.Get().Find(second) == nil {
		t.Error("a missing file")
	}
	if _, err := WatchTokens(path, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a missing file at the start is no error")
	}
}

// shake does a TLS handshake over loopback and returns the client's view of it.
func shake(t *testing.T, server, client *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte("x")) // shakes hands
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), client)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer c.Close()
	_, err = c.Read(make([]byte, 1)) // a client's certificate is refused only after its own handshake
	return c.ConnectionState(), err
}

// trusting is a client that trusts a certificate.
func trusting(t *testing.T, cert string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}}
}

func TestServerTLS(t *testing.T) {
	cert, key := certtest.Files(t, t.TempDir())
	other, _ := certtest.Files(t, t.TempDir())
	server, err := ServerTLS(cert, key, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if state, err := shake(t, server, trusting(t, cert)); err != nil || state.NegotiatedProtocol != "h2" {
		t.Errorf("%v, %q", err, state.NegotiatedProtocol)
	}
	old := trusting(t, cert)
	old.MaxVersion = tls.VersionTLS11
	if _, err := shake(t, server, old); err == nil {
		t.Error("TLS 1.1 is served")
	}
	if _, err := shake(t, server, trusting(t, other)); err == nil {
		t.Error("a client that trusts another authority connected")
	}
}

// TestCertificatesAreReloaded: a new certificate serves new connections without a restart.
func TestCertificatesAreReloaded(t *testing.T) {
	dir := t.TempDir()
	cert, key := certtest.Files(t, dir)
	first := trusting(t, cert)
	read := func() (*tls.Config, error) { return readTLS(cert, key, "") }
	w, err := Watch(slog.New(slog.DiscardHandler), read, cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return w.Get(), nil }}
	if _, err := shake(t, server, first); err != nil {
		t.Fatal(err)
	}
	certtest.Files(t, dir)
	w.looked = time.Time{}
	if _, err := shake(t, server, trusting(t, cert)); err != nil {
		t.Errorf("the new certificate: %v", err)
	}
	if _, err := shake(t, server, first); err == nil {
		t.Error("the old certificate is still served")
	}
}

func TestClientCertificates(t *testing.T) {
	cert, key := certtest.Files(t, t.TempDir())
	clientCert, clientKey := certtest.Files(t, t.TempDir())
	server, err := ServerTLS(cert, key, clientCert, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	with := func(clientCert, clientKey string) *tls.Config {
		c := trusting(t, cert)
		pair, err := tls.LoadX509KeyPair(clientCert, clientKey)
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
		return c
	}
	if _, err := shake(t, server, with(clientCert, clientKey)); err != nil {
		t.Error(err)
	}
	if _, err := shake(t, server, trusting(t, cert)); err == nil {
		t.Error("a client without a certificate connected")
	}
	if _, err := shake(t, server, with(cert, key)); err == nil {
		t.Error("a client of another authority connected")
	}
}

func TestBadCertificateFiles(t *testing.T) {
	dir := t.TempDir()
	cert, key := certtest.Files(t, dir)
	for _, paths := range [][3]string{
		{cert, "", ""},
		{"", key, ""},
		{key, cert, ""},
		{cert, key, key},
		{cert, filepath.Join(dir, "none"), ""},
	} {
		if _, err := ServerTLS(paths[0], paths[1], paths[2], slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%v are taken", paths)
		}
	}
}
