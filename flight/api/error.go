package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Error is an error of the contract. Its text is
//
//	[CODE] sentence. hint
//
// where the sentence says what is wrong and the hint, when there is one, what to do.
type Error struct {
	Code    Code
	Message string // one sentence, without its full stop
	Hint    string // what to do; may be empty
	cause   error
}

// Errorf makes an error of the given code whose sentence is formatted as by fmt.Errorf; an operand of %w becomes its
// cause.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: strings.TrimSuffix(wrapped.Error(), "."), cause: errors.Unwrap(wrapped)}
}

// WithHint returns a copy of e that tells what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// Error returns the text that travels to clients.
func (e *Error) Error() string {
	s := "[" + string(e.Code) + "] " + e.Message + "."
	if e.Hint != "" {
		s += " " + e.Hint
	}
	return s
}

// Unwrap returns the cause, which stays on the server.
func (e *Error) Unwrap() error { return e.cause }

// ErrorOf returns the error of the contract inside err: err's own *Error if it has one, CANCELLED for an ended context,
// and INTERNAL, which tells the client nothing, for everything else. ErrorOf(nil) is nil.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return &Error{Code: Cancelled, Message: "The request was cancelled", cause: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: Cancelled, Message: "The deadline of the request passed", cause: err}
	}
	return &Error{Code: Internal, Message: "The server failed", cause: err}
}

// ParseError reads the text of an Error back, for clients; ok is false if s holds no bracketed code of the contract.
func ParseError(s string) (e *Error, ok bool) {
	for {
		open := strings.IndexByte(s, '[')
		if open < 0 {
			return nil, false
		}
		s = s[open+1:]
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return nil, false
		}
		code := Code(s[:end])
		if _, known := classes[code]; known {
			return &Error{Code: code, Message: strings.TrimSuffix(strings.TrimSpace(s[end+1:]), ".")}, true
		}
	}
}
