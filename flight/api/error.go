package api

import (
	"context"
	"encoding/json"
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
// The sentence says what is wrong; the hint, which may be missing, says what to do.
type Error struct {
	Code    Code
	Message string // one sentence, without its full stop
	Hint    string // what to do; may be empty
	cause   error
}

// Errorf returns an error of a code with a sentence that is formatted as by fmt.Errorf. The operand of %w becomes its
// cause. Quoted words, which a client may have sent, are cut to 80 characters, and the sentence to 1,000.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	sentence := strings.TrimSuffix(readable(jsonerror.Text(wrapped)), ".")
	return &Error{Code: code, Message: sentence, cause: errors.Unwrap(wrapped)}
}

// WithHint returns a copy of e with a hint, which is cut as by Errorf.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = readable(fmt.Sprintf(format, args...))
	return &c
}

// Error returns the text that is sent to clients.
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

// Unwrap returns the cause, which is not sent to clients.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is the error of a context that e's code stands for, on both sides of the wire.
func (e *Error) Is(target error) bool {
	return e.Code == DeadlineExceeded && target == context.DeadlineExceeded ||
		e.Code == Cancelled && target == context.Canceled
}

// ErrorOf returns the *Error in err's chain. Without one it returns CANCELLED or DEADLINE_EXCEEDED for the error of a
// context, NOT_FINITE for a reply with NaN, and otherwise INTERNAL, which tells the client no details. ErrorOf(nil) is
// nil.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	var number *json.UnsupportedValueError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return &Error{Code: Cancelled, Message: "The request was cancelled", cause: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: DeadlineExceeded, Message: "The deadline of the request passed", cause: err}
	case errors.As(err, &number): // JSON has no NaN
		return &Error{Code: NotFinite, Message: "The result is not finite: it holds " + number.Str, cause: err}
	}
	return &Error{Code: Internal, Message: "The server failed", cause: err}
}

// ParseError reads the text of an Error, for clients. ok is false if s has no code of the contract in brackets.
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

// Code is the stable name of an error. Every error message on the wire begins with it, in brackets, so that clients can
// distinguish errors that their gRPC library maps to one class.
type Code string

// The codes of the contract, by class.
const (
	ModelNotFound    Code = "MODEL_NOT_FOUND"
	ScheduleNotFound Code = "SCHEDULE_NOT_FOUND"
	BasisNotFound    Code = "BASIS_NOT_FOUND"
	PlanNotFound     Code = "PLAN_NOT_FOUND"
	DatasetNotFound  Code = "DATASET_NOT_FOUND"
	RunNotFound      Code = "RUN_NOT_FOUND"
	OpNotFound       Code = "OP_NOT_FOUND"
	PathNotFound     Code = "PATH_NOT_FOUND" // a descriptor's path begins with no known kind

	BadRequest  Code = "BAD_REQUEST"
	BadTensor   Code = "BAD_TENSOR"
	BadSchedule Code = "BAD_SCHEDULE"
	BadModel    Code = "BAD_MODEL"

	NameTaken Code = "NAME_TAKEN"

	RunNotRunnable Code = "RUN_NOT_RUNNABLE"
	NotFinite      Code = "NOT_FINITE" // a network's answers, or the loss of a run, are NaN or infinite

	TooLarge Code = "TOO_LARGE"
	Busy     Code = "BUSY"
	Storage  Code = "STORAGE" // the disk is full, or reading or writing failed

	Draining Code = "DRAINING"

	NoToken Code = "NO_TOKEN"

	ScopeMissing Code = "SCOPE"

	Cancelled        Code = "CANCELLED"
	DeadlineExceeded Code = "DEADLINE_EXCEEDED"

	Unimplemented Code = "UNIMPLEMENTED" // a call of Arrow Flight that this server does not have

	Damaged Code = "DAMAGED" // a stored file has changed

	Internal Code = "INTERNAL"
)

// DamageHint is the hint of DAMAGED.
const DamageHint = "Put an intact copy in its place, or delete it; anisoflight fsck finds all that is damaged."

// statuses maps the contract's codes to gRPC's.
var statuses = map[Code]codes.Code{
	ModelNotFound:    codes.NotFound,
	ScheduleNotFound: codes.NotFound,
	BasisNotFound:    codes.NotFound,
	PlanNotFound:     codes.NotFound,
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
	NotFinite:        codes.FailedPrecondition,
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

// Status returns gRPC's code of c. It is Internal for an unknown code.
func (c Code) Status() codes.Code {
	if status, known := statuses[c]; known {
		return status
	}
	return codes.Internal
}

// Limits on the text of errors, in characters. gRPC's C++ clients fail if all trailers exceed 8 KiB.
const (
	mostQuoted = 80   // of a quoted word
	mostText   = 1000 // of a sentence, or a hint
)

// quote matches a quoted Go string, with the beginning of one of more than mostQuoted characters. It has to match short
// ones too, because the text between two of them is not quoted.
var quote = regexp.MustCompile(`"(?:[^"\\]|\\.){0,80}"|"((?:[^"\\]|\\.){80})(?:[^"\\]|\\.)+"?`)

// packages matches the names that Go's packages put before their errors, and errors of its runtime.
var packages = regexp.MustCompile(`(^|\s)(?:json|proto|wire|arrow(?:/\w+)?): |runtime error: .*`)

// readable returns an error's text without names of packages, with its quoted words and itself cut.
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
