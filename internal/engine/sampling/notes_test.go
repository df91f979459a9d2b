package sampling

import (
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// notesOf returns the notes on a sampler along EDM's schedule.
func notesOf(t *testing.T, asked api.Sample) string {
	t.Helper()
	edm, err := catalog.EDM(api.DefaultT, schedule.DefaultG0)
	if err != nil {
		t.Fatal(err)
	}
	s := catalog.Schedule{Name: "edm", Parts: catalog.Parts{Schedule: edm}}
	set, err := settingsOf(asked).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	p, err := solver.New(set, edm, 0)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(notes(asked, set, s, nil, p), "\n")
}

func TestWhatIsTakenInPlaceIsNoted(t *testing.T) {
	for _, q := range []struct {
		asked api.Sample
		want  string
	}{
		{api.Sample{Solver: "heun", NFE: 9}, "nfe 9: whole steps of heun take 8 evaluations; second_point endpoint takes 9"},
		{api.Sample{Solver: "heun", NFE: 8, Grid: api.Grid{Kind: api.GridEDM}}, "take 7 evaluations; ask for 7, or give"},
		{api.Sample{Solver: "heun", NFE: 8}, ""},
		{api.Sample{Solver: "unipc", NFE: 9}, "order is 2 by default with solver unipc"},
		{api.Sample{Solver: "unipc", NFE: 9, Order: 2}, ""},
		{api.Sample{Solver: "unipc", NFE: 13}, ""},
	} {
		if note := notesOf(t, q.asked); !strings.Contains(note, q.want) || q.want == "" && note != "" {
			t.Errorf("%+v: %q, want %q", q.asked, note, q.want)
		}
	}
}
