package sampling

import (
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// notesOn returns the notes on a sampler along a path through variances at equal times.
func notesOn(t *testing.T, asked api.Sample, g ...float64) string {
	t.Helper()
	var s catalog.Schedule
	if len(g) == 0 {
		edm, err := catalog.EDM(api.DefaultT)
		if err != nil {
			t.Fatal(err)
		}
		s = catalog.Schedule{Name: "edm", Parts: catalog.Parts{Schedule: edm}}
	} else {
		times := make([]float64, len(g))
		for i := range times {
			times[i] = g[len(g)-1] * float64(i) / float64(len(g)-1)
		}
		path, err := schedule.NewPath(times, g)
		if err != nil {
			t.Fatal(err)
		}
		s = catalog.Schedule{Name: "path", Parts: catalog.Parts{Schedule: schedule.Isotropic(path)}}
	}
	set, err := settingsOf(asked).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	p, err := solver.New(set, s.Schedule, 0)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(notes(asked, set, s, 0, nil, p), "\n")
}

// steep is what a geodesic of T = 6400 gives in few steps: σ = 80, 3.2, 1.26, …
var steep = []float64{1e-9, 0.0625, 0.25, 1.6, 10.24, 6400}

func TestAStepThatJumpsIsNoted(t *testing.T) {
	asked := api.Sample{Solver: "ipndm", NFE: 5}
	if note := notesOn(t, asked, steep...); !strings.Contains(note, "step 1 of 5 goes from noise level 80 to 3.2") ||
		!strings.Contains(note, "T, such as 400") {
		t.Errorf("notes %q", note)
	}
	if note := notesOn(t, api.Sample{Solver: "ipndm", NFE: 60}, steep...); note != "" {
		t.Errorf("with many steps: %q", note)
	}
	levels := api.Sample{Solver: "ipndm", Grid: api.Grid{Kind: api.GridSigmas, Sigma: [][]float64{{80, 1, 0}}}}
	if note := notesOn(t, levels, steep...); note != "" {
		t.Errorf("of levels that were asked for: %q", note)
	}
}

// EDM's own grids are what others are compared with, in every number of evaluations.
func TestGridsOfEDMAreNotNoted(t *testing.T) {
	for nfe := 3; nfe <= 39; nfe += 2 {
		for _, asked := range []api.Sample{
			{Solver: "heun", SecondPoint: "endpoint", NFE: nfe},
			{Solver: "heun", NFE: nfe, Grid: api.Grid{Kind: api.GridEDM}},
			{Solver: "ipndm", NFE: nfe, Grid: api.Grid{Kind: api.GridPolynomial}},
			{Solver: "ipndm", NFE: nfe},
		} {
			if note := notesOn(t, asked); note != "" {
				t.Errorf("%+v: %q", asked, note)
			}
		}
	}
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
		if note := notesOn(t, q.asked); !strings.Contains(note, q.want) || q.want == "" && note != "" {
			t.Errorf("%+v: %q, want %q", q.asked, note, q.want)
		}
	}
}
