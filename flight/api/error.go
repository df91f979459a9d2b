package api

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/anisoflight/anisoflight/internal/base/jsonerror"
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
// cause. Quoted words in it are cut to 80 characters, since a client may have sent them, and all of it to 1,000.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	sentence := strings.TrimSuffix(readable(jsonerror.Text(wrapped)), ".")
	return &Error{Code: code, Message: sentence, cause: errors.Unwrap(wrapped)}
}

// WithHint returns a copy of e that tells what to do, cut as Errorf cuts its sentence.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = readable(fmt.Sprintf(format, args...))
	return &c
}

// Error returns the text that travels to clients.
func (e *Error) Error() string {
	s := "[" + string(e.Code) + "] " + e.Message
	if !strings.HasSuffix(e.Message, "?") {
		s += "."
	}
	if e.Hint != "" {
		s += " " + e.Hint
	}
	return s
}

// Unwrap returns the cause, which stays on the server.
func (e *Error) Unwrap() error { return e.cause }

// ErrorOf returns the error of the contract inside err: err's own *Error if it has one, CANCELLED or DEADLINE_EXCEEDED
// for an ended context, and INTERNAL, which tells the client nothing, for everything else. ErrorOf(nil) is nil.
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
		return &Error{Code: DeadlineExceeded, Message: "The deadline of the request passed", cause: err}
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
		if _, known := statuses[code]; known {
			return &Error{Code: code, Message: strings.TrimSuffix(strings.TrimSpace(s[end+1:]), ".")}, true
		}
	}
}

// Code is the stable name of an error. It stands in brackets at the head of every error message on the wire, so that a
// client can tell apart errors that its gRPC library maps to one class.
type Code string

// The codes of the contract, by class.
const (
	ModelNotFound    Code = "MODEL_NOT_FOUND"
	ScheduleNotFound Code = "SCHEDULE_NOT_FOUND"
	BasisNotFound    Code = "BASIS_NOT_FOUND"
	DatasetNotFound  Code = "DATASET_NOT_FOUND"
	RunNotFound      Code = "RUN_NOT_FOUND"
	OpNotFound       Code = "OP_NOT_FOUND"
	PathNotFound     Code = "PATH_NOT_FOUND" // of a descriptor that names nothing of any kind

	BadRequest  Code = "BAD_REQUEST"
	BadTensor   Code = "BAD_TENSOR"
	BadSchedule Code = "BAD_SCHEDULE"
	BadModel    Code = "BAD_MODEL"

	NameTaken Code = "NAME_TAKEN"

	RunNotRunnable Code = "RUN_NOT_RUNNABLE"

	TooLarge Code = "TOO_LARGE"
	Busy     Code = "BUSY"
	Storage  Code = "STORAGE" // the disk is full, or does not take or give what it should

	Draining Code = "DRAINING"

	NoToken Code = "NO_TOKEN"

	ScopeMissing Code = "SCOPE"

	Cancelled        Code = "CANCELLED"
	DeadlineExceeded Code = "DEADLINE_EXCEEDED"

	Unimplemented Code = "UNIMPLEMENTED" // of what Arrow Flight defines

	Damaged Code = "DAMAGED" // what is stored is not what was written

	Internal Code = "INTERNAL"
)

// DamageHint says what to do about something stored that is DAMAGED.
const DamageHint = "Put an intact copy in its place, or delete it; anisoflight fsck finds all that is damaged."

// statuses are gRPC's codes of the contract's.
var statuses = map[Code]codes.Code{
	ModelNotFound:    codes.NotFound,
	ScheduleNotFound: codes.NotFound,
	BasisNotFound:    codes.NotFound,
	DatasetNotFound:  codes.NotFound,
	RunNotFound:      codes.NotFound,
	OpNotFound:       codes.NotFound,
	PathNotFound:     codes.NotFound,
	BadRequest:       codes.InvalidArgument,
	BadTensor:        codes.InvalidArgument,
	BadSchedule:      codes.InvalidArgument,
	BadModel:         codes.InvalidArgument,
	NameTaken:        codes.AlreadyExists,
	RunNotRunnable:   codes.FailedPrecondition,
	TooLarge:         codes.ResourceExhausted,
	Busy:             codes.ResourceExhausted,
	Storage:          codes.ResourceExhausted,
	Draining:         codes.Unavailable,
	NoToken:          codes.Unauthenticated,
	ScopeMissing:     codes.PermissionDenied,
	Cancelled:        codes.Canceled,
	DeadlineExceeded: codes.DeadlineExceeded,
	Unimplemented:    codes.Unimplemented,
	Damaged:          codes.DataLoss,
	Internal:         codes.Internal,
}

// Status returns gRPC's code of an error; that of a code which the contract does not know is Internal.
func (c Code) Status() codes.Code {
	if status, known := statuses[c]; known {
		return status
	}
	return codes.Internal
}

// Bounds on the text of errors, in characters. gRPC's C++ clients take 8 KiB of trailers in all, and fail beyond.
const (
	mostQuoted = 80   // of what was sent
	mostText   = 1000 // of a sentence, or a hint
)

// quote is a quoted Go string, with the beginning of one of more than mostQuoted characters. It matches the short ones
// too: the text between two of them is not quoted.
var quote = regexp.MustCompile(`"(?:[^"\\]|\\.){0,80}"|"((?:[^"\\]|\\.){80})(?:[^"\\]|\\.)+"?`)

// packages are the names that Go's packages put before their errors, and what its runtime says.
var packages = regexp.MustCompile(`(^|\s)(?:json|proto|wire|arrow(?:/\w+)?): |runtime error: .*`)

// readable returns an error's text in words that a client knows, and cuts its quoted words and the whole.
func readable(text string) string {
	text = packages.ReplaceAllString(text, "$1")
	if len(text) <= mostQuoted {
		return text
	}
	text = quote.ReplaceAllStringFunc(cut(text, 16*mostText), func(quoted string) string {
		if begin := quote.FindStringSubmatch(quoted)[1]; begin != "" {
			return `"` + begin + `…"`
		}
		return quoted
	})
	return cut(text, mostText)
}
