package api

import (
	"context"
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
		{context.DeadlineExceeded, Cancelled},
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

func TestEveryCodeHasItsClass(t *testing.T) {
	want := map[Class]int{
		ClassNotFound: 6, ClassInvalidArgument: 4, ClassAlreadyExists: 1, ClassFailedPrecondition: 1,
		ClassResourceExhausted: 3, ClassUnavailable: 1, ClassUnauthenticated: 1, ClassPermissionDenied: 1,
		ClassCancelled: 1, ClassDataLoss: 1,
		ClassInternal: 1,
	}
	got := map[Class]int{}
	for code := range classes {
		got[code.Class()]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("codes by class %v, want %v", got, want)
	}
	if Code("UNHEARD_OF").Class() != ClassInternal {
		t.Error("an unknown code is not internal")
	}
}
