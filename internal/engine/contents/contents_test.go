package contents

import (
	"log/slog"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
)

// wantCode checks the error that a client gets.
func wantCode(t *testing.T, what string, err error, want api.Code, says ...string) {
	t.Helper()
	apitest.WantCode(t, what, explain.Error(err), want, says...)
}

// open opens the contents of a data folder.
func open(t *testing.T, dir string) *Contents {
	t.Helper()
	c, err := catalog.Open(t.Context(), catalog.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &Contents{Catalog: c, MaxBytes: 1 << 30, MaxUploadBytes: 4 << 30}
}

// sink is an upload that takes whatever comes.
var sink = api.Upload{
	Write: func(api.Batch) error { return nil }, Commit: func() (int64, error) { return 0, nil },
}

var numbers = api.Schema{Columns: []api.Column{{Name: "x", Type: api.Float64}}}

// TestBudget: uploads hold bytes of the budget until they end.
func TestBudget(t *testing.T) {
	budget := &Contents{MaxUploadBytes: 50}
	first, second := budget.limitedUpload(sink, numbers, 0, 64, 3), budget.limitedUpload(sink, numbers, 0, 16, 1)
	for _, step := range []struct {
		upload *api.Upload
		rows   int
		code   api.Code
		held   int64
	}{
		{first, 4, "", 96},
		{second, 1, api.Busy, 96},
		{first, 1, api.Busy, 96},
	} {
		err := step.upload.Write(api.Batch{Rows: step.rows})
		if codeOf(err) != step.code || budget.heldBytes.Load() != step.held {
			t.Errorf("%d rows: %v, and %d bytes are held; want %q and %d",
				step.rows, err, budget.heldBytes.Load(), step.code, step.held)
		}
	}
	if first.Abort(); budget.heldBytes.Load() != 0 {
		t.Errorf("%d bytes are held by none", budget.heldBytes.Load())
	}
	if err := second.Write(api.Batch{Rows: 3}); codeOf(err) != api.TooLarge {
		t.Errorf("24 bytes of 16: %v", err)
	}
	if _, err := second.Commit(); err != nil || budget.heldBytes.Load() != 0 {
		t.Errorf("%v; %d bytes are held by none", err, budget.heldBytes.Load())
	}
}

// TestAnnouncedRows: an upload of another number of rows than its client has announced is refused.
func TestAnnouncedRows(t *testing.T) {
	for rows, want := range map[int]api.Code{3: api.BadRequest, 4: "", 5: api.BadRequest} {
		u := (&Contents{MaxUploadBytes: 50}).limitedUpload(sink, numbers, 4, 100, 1)
		err := u.Write(api.Batch{Rows: rows})
		if err == nil {
			_, err = u.Commit()
		}
		if codeOf(err) != want {
			t.Errorf("%d rows of 4: %v, want %q", rows, err, want)
		}
	}
}

func codeOf(err error) api.Code {
	if e := api.ErrorOf(err); e != nil {
		return e.Code
	}
	return ""
}
