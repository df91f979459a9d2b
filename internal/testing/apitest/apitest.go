// Package apitest speaks the contract in tests: requests as JSON, uploads, and the codes of errors.
package apitest

import (
	"context"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Request returns the request of an operation that a body makes, with its defaults.
func Request[R any](tb testing.TB, op, body string) R {
	tb.Helper()
	r, err := decode[R](op, body)
	if err != nil {
		tb.Fatalf("%s %s: %v", op, body, err)
	}
	return *r
}

func decode[R any](op, body string) (*R, error) {
	m, err := api.ReadMessage([]byte(body))
	if err != nil {
		return nil, err
	}
	call, err := api.Operations().Named(op).Call(m)
	if err != nil {
		return nil, err
	}
	return any(call.Request).(*R), nil
}

// Put uploads batches by an operation, and returns the number of rows that it stored.
func Put[R any](ctx context.Context, open func(context.Context, R, api.Schema) (*api.Upload, error), op, body string,
	in api.Schema, batches ...api.Batch,
) (int64, error) {
	req, err := decode[R](op, body)
	if err != nil {
		return 0, err
	}
	u, err := open(ctx, *req, in)
	if err != nil {
		return 0, err
	}
	return Send(u, batches...)
}

// Send writes batches to an upload and commits it, or aborts it at the first error.
func Send(u *api.Upload, batches ...api.Batch) (int64, error) {
	for _, b := range batches {
		if err := u.Write(b); err != nil {
			u.Abort()
			return 0, err
		}
	}
	return u.Commit()
}

// WantCode checks that err is an error of the contract with a code, in these words.
func WantCode(tb testing.TB, what string, err error, want api.Code, says ...string) {
	tb.Helper()
	if err == nil || api.ErrorOf(err).Code != want {
		tb.Errorf("%s: got %v, want %s", what, err, want)
		return
	}
	for _, words := range says {
		if !strings.Contains(err.Error(), words) {
			tb.Errorf("%s: %v does not say %q", what, err, words)
		}
	}
}
