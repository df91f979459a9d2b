package auth

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Principal is the holder of a token.
type Principal struct {
	Name   string
	Scopes []api.Scope
}

// May reports whether the principal has a scope.
func (p *Principal) May(s api.Scope) bool { return slices.Contains(p.Scopes, s) }

// Tokens are the valid tokens of a server.
type Tokens struct{ entries []entry }

type entry struct {
	principal Principal
	hash      [sha256.Size]byte
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ParseTokens parses a list of tokens: lines of
//
//	NAME SCOPE[,SCOPE…] sha256:HEX
//
// in any order, with empty lines and comments after #. A name may have several tokens, so that a principal can change
// from one to the next.
func ParseTokens(text []byte) (*Tokens, error) {
	t := &Tokens{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		e, err := parseEntry(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		t.entries = append(t.entries, e)
	}
	return t, lines.Err()
}

func parseEntry(fields []string) (e entry, err error) {
	if len(fields) != 3 {
		return e, fmt.Errorf("auth: a line must be NAME SCOPES sha256:HEX, got %d words", len(fields))
	}
	if !namePattern.MatchString(fields[0]) {
		return e, fmt.Errorf("auth: a name must be up to 64 letters, digits and . _ -, got %q", fields[0])
	}
	e.principal.Name = fields[0]
	if e.principal.Scopes, err = ParseScopes(fields[1]); err != nil {
		return e, err
	}
	digits, ok := strings.CutPrefix(fields[2], "sha256:")
	hash, err := hex.DecodeString(digits)
	if !ok || err != nil || len(hash) != len(e.hash) {
		return e, fmt.Errorf("auth: the third word must be sha256: and %d hexadecimal digits", 2*len(e.hash))
	}
	copy(e.hash[:], hash)
	return e, nil
}

// Find returns the principal of a token, nil if the token is not valid. Its duration depends only on the number of
// tokens.
func (t *Tokens) Find(token string) *Principal {
	hash := sha256.Sum256([]byte(token))
	var found *Principal
	for i := range t.entries {
		if subtle.ConstantTimeCompare(hash[:], t.entries[i].hash[:]) == 1 {
			found = &t.entries[i].principal
		}
	}
	return found
}

// WatchTokens watches a file of tokens.
func WatchTokens(path string, log *slog.Logger) (*Watched[*Tokens], error) {
	return Watch(log, func() (*Tokens, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		t, err := ParseTokens(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return t, nil
	}, path)
}

// NewToken returns a new token and its line for the file of tokens.
func NewToken(name string, scopes []api.Scope) (token, line string, err error) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	token = "aniso_" + base64.RawURLEncoding.EncodeToString(secret[:])
	hash := sha256.Sum256([]byte(token))
	var words []string
	for _, s := range scopes {
		words = append(words, string(s))
	}
	fields := []string{name, strings.Join(words, ","), "sha256:" + hex.EncodeToString(hash[:])}
	_, err = parseEntry(fields)
	return token, strings.Join(fields, " "), err
}

// ParseScopes parses a list such as "read,sample".
func ParseScopes(text string) ([]api.Scope, error) {
	var list []api.Scope
	for word := range strings.SplitSeq(text, ",") {
		s := api.Scope(word)
		if !slices.Contains(api.Scopes, s) {
			return nil, fmt.Errorf("auth: a scope must be read, sample, train or admin, got %q", word)
		}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, nil
}
