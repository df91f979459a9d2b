package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestErrorText(t *testing.T) {
	e := Errorf(ModelNotFound, "No model is called %q", "x").WithHint("Ask ListModels.")
	if got, want := e.Error(), `[MODEL_NOT_FOUND] No model is called "x". Ask ListModels.`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	back, ok := ParseError("rpc error: [1] code = NotFound desc = " + e.Error())
	if !ok || back.Code != ModelNotFound {
		t.Errorf("ParseError gave %+v, %v", back, ok)
	}
	if _, ok := ParseError("no [code] here"); ok {
		t.Error("ParseError found a code where there is none")
	}
}

// TestErrorsNameNoGo: errors of Go's packages are rewritten in terms of JSON, without the packages' names.
func TestErrorsNameNoGo(t *testing.T) {
	var dst struct {
		Channels int `json:"channels"`
	}
	err := json.Unmarshal([]byte(`{"channels":"x"}`), &dst)
	const want = "File: channels must be a whole number, got string"
	if got := Errorf(BadModel, "File: %w", err); got.Message != want || !errors.Is(got, err) {
		t.Errorf("%q, want %q", got.Message, want)
	}
	const file = "The stored file run.json: not as it was written"
	if got := Errorf(Damaged, file).Message; got != file {
		t.Errorf("%q", got)
	}
	const damaged = "arrow/ipc: could not read: runtime error: index out of range [3] with length 2"
	if got := Errorf(BadTensor, "Stream: %s", damaged).Message; got != "Stream: could not read: " {
		t.Errorf("%q", got)
	}
}

func TestTextBehindAQuoteIsWhole(t *testing.T) {
	long := strings.Repeat("x", 90)
	for sentence, want := range map[string]string{
		`Column "image" is ` + long:         `Column "image" is ` + long,
		fmt.Sprintf("%q is %q", "a", long):  `"a" is "` + long[:80] + `…"`,
		fmt.Sprintf("%q is %s", long, long): `"` + long[:80] + `…" is ` + long,
	} {
		if got := Errorf(BadRequest, "%s", sentence).Error(); got != "[BAD_REQUEST] "+want+"." {
			t.Errorf("%s", got)
		}
	}
}

func TestErrorOf(t *testing.T) {
	own := Errorf(TooLarge, "Too large: %w", io.EOF)
	tests := []struct {
		err  error
		code Code
	}{
		{fmt.Errorf("outer: %w", own), TooLarge},
		{fmt.Errorf("outer: %w", context.Canceled), Cancelled},
		{context.DeadlineExceeded, DeadlineExceeded},
		{io.ErrUnexpectedEOF, Internal},
	}
	for _, test := range tests {
		if got := ErrorOf(test.err).Code; got != test.code {
			t.Errorf("%v: got %s, want %s", test.err, got, test.code)
		}
	}
	if ErrorOf(nil) != nil {
		t.Error("ErrorOf(nil) is not nil")
	}
	if !errors.Is(own, io.EOF) {
		t.Error("the cause is lost")
	}
	if got := ErrorOf(errors.New("secret path")).Error(); got != "[INTERNAL] The server failed." {
		t.Errorf("an internal error tells %q", got)
	}
}

// An error that a server has sent is that of a context, as an error of the client's own is.
func TestCodesOfContexts(t *testing.T) {
	for target, text := range map[error]string{
		context.DeadlineExceeded: "[DEADLINE_EXCEEDED] The deadline of the request passed.",
		context.Canceled:         "[CANCELLED] The request was cancelled.",
	} {
		e, ok := ParseError(text)
		if err := fmt.Errorf("sampling: %w", e); !ok || !errors.Is(err, target) {
			t.Errorf("%v is not %v", err, target)
		}
		if other, _ := ParseError("[BUSY] The server is at work."); errors.Is(other, target) {
			t.Errorf("%v is %v", other, target)
		}
	}
}
