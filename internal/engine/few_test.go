package engine

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
)

// A request for a search becomes a schedule that says what was tried and why, and carries its solver. What becomes of
// it is tested in Python.
func TestMakeScheduleFew(t *testing.T) {
	dir := t.TempDir()
	small := strings.Replace(tiny, `"img_resolution":8`, `"img_resolution":4`, 1)
	writeModel(t, filepath.Join(dir, "models", "tiny"), small, 1)
	e := reopen(t, dir, Config{Device: devicetest.Open(t)})
	putSmoothOf(t, e, "smooth", 96, 4)
	last, total := 0, 0
	reply, err := perform(t.Context(), e, "MakeSchedule", `{"name":"few","kind":"few","model":"tiny","dataset":"smooth",
		"nfe":3,"samples":64,"solvers":["ipndm","local","fitted"]}`, func(m api.Meta) {
		if m["event"] == "progress" {
			last, total = m["step"].(int), m["steps"].(int)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if last == 0 || last != total {
		t.Errorf("progress ends with %d of %d", last, total)
	}
	made := reply.(api.ScheduleInfo)
	f := made.Few
	if f == nil || made.Sampler == nil || made.Sampler.Solver != f.Chosen.Solver || made.Sampler.NFE != 3 ||
		f.Model != "tiny" || f.Samples != 64 || f.Against.Solver != "ipndm" || f.Against.Start != api.StartStandard {
		t.Fatalf("made %+v with %+v", made, f)
	}
	if s := f.Summary; !strings.HasPrefix(s, f.Chosen.Solver+" from sigma ") ||
		!strings.Contains(s, " plain sampler from noise alone") {
		t.Errorf("summary %q", s)
	}
	// The first of the tries is chosen if it is better by a standard error, else the plain sampler.
	right := f.Against
	if math.Log(f.Ratio)+f.RatioStderr/f.Ratio < 0 {
		right = f.Tries[0]
	}
	if f.Chosen.FewDistances != right.FewDistances {
		t.Errorf("chosen %+v of a ratio of %g ± %g", f.Chosen, f.Ratio, f.RatioStderr)
	}
	own := api.Few{Chosen: f.Against, Against: f.Against, Tries: []api.FewTry{f.Against, f.Chosen}}
	if own.Summarize(); !strings.Contains(own.Summary, "no try did better") ||
		!strings.Contains(own.Summary, "next, "+f.Chosen.Solver) {
		t.Errorf("summary %q", own.Summary)
	}
	for _, q := range f.Tries {
		if q.NFE != 3 || !(q.Frequencies > 0 && q.Edges > 0 && q.Responses > 0) || q.Held != nil || q.Start == "" ||
			q.Levels == "" {
			t.Errorf("try %+v", q)
		}
	}
}
