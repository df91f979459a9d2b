package safely

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDo(t *testing.T) {
	if err := Do(func() error { return nil }); err != nil {
		t.Error(err)
	}
	if err := Do(func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	var p *Panic
	err := Do(func() error { panic(io.ErrNoProgress) })
	if !errors.As(err, &p) || !errors.Is(err, io.ErrNoProgress) || !strings.Contains(string(p.Stack), "TestDo") {
		t.Errorf("%v, %+v", err, p)
	}
	var list []int
	if err := Do(func() error { list[3] = 1; return nil }); err == nil ||
		!strings.Contains(err.Error(), "index out of range") {
		t.Error(err)
	}
}
