package auth

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
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
