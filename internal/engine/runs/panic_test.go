package runs

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train"
)

// TestPanicFailsTheRunAlone: a step that panics fails its run, which says so, and nothing else.
func TestPanicFailsTheRunAlone(t *testing.T) {
	folder := t.TempDir()
	c, err := catalog.Open(t.Context(), catalog.Config{Dir: folder, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := Open(Config{Catalog: c, Queue: batch.NewQueue(1), Logger: slog.New(slog.DiscardHandler)})
	r := s.newRun("r", status{State: Created}, train.Config{}, nil)
	r.folder = t.TempDir()
	r.train = new(train.Run) // which has no network to take a step with
	s.runs["r"] = r
	if _, err := s.Start(t.Context(), api.StartRun{Run: "r", Kimg: 1}); err != nil {
		t.Fatal(err)
	}
	<-r.ended
	info := r.Info()
	if info.State != Failed || !strings.HasPrefix(info.Error, "A fault of the server ended step 1: panic: ") {
		t.Errorf("the run is %s: %s", info.State, info.Error)
	}
	if !strings.Contains(info.Error, "nil pointer") {
		t.Errorf("%q does not say what happened", info.Error)
	}
}
