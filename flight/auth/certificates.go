package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// Authority signs certificates for a server of one's own and its clients, where there is no public name to get one for.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	life time.Duration
}

// NewAuthority makes an authority whose certificates are good from now for life.
func NewAuthority(life time.Duration) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := template("anisoflight authority", life)
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	c.MaxPathLenZero = true
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert: cert, key: key, life: life}, err
}

// Certificate returns the authority's own certificate in PEM: what clients trust, and servers ask of their clients.
func (a *Authority) Certificate() []byte { return pemOf("CERTIFICATE", a.cert.Raw) }

// Server makes a certificate and its key, in PEM, for the server of the hosts: names and addresses.
func (a *Authority) Server(hosts ...string) (cert, key []byte, err error) {
	c := template("anisoflight server", a.life)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	return a.sign(c)
}

// Client makes a certificate and its key, in PEM, for a client.
func (a *Authority) Client(name string) (cert, key []byte, err error) {
	c := template(name, a.life)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(c)
}

func (a *Authority) sign(c *x509.Certificate) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	return pemOf("CERTIFICATE", der), pemOf("PRIVATE KEY", secret), err
}

// template is what all certificates have. They begin a little in the past, for clocks that are behind.
func template(name string, life time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // never fails
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life), KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
