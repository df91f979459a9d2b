package engine

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/devicetest"
)

// The choice is the best of the tries, it is told what it gains on samples held back, and sampling along it needs no
// other setting than nfe.
func TestFewChoosesAndIsSampled(t *testing.T) {
	dir := t.TempDir()
	small := strings.Replace(tiny, `"img_resolution":8`, `"img_resolution":4`, 1)
	writeModel(t, filepath.Join(dir, "models", "tiny"), small, 1)
	e := reopen(t, dir, Config{Device: devicetest.Open(t)})
	putSmoothOf(t, e, "smooth", 96, 4)
	made := makeGaussian(t, e, `{"name":"few","kind":"few","model":"tiny","dataset":"smooth","nfe":3,"samples":64,
		"solvers":["ipndm","dpmpp2m"]}`)
	f := made.Few
	if f == nil || made.Sampler == nil || made.Sampler.Solver != f.Chosen.Solver || made.Sampler.NFE != 3 {
		t.Fatalf("made %+v with %+v", made, f)
	}
	score := func(q api.FewTry) float64 { return q.Frequencies * q.Edges }
	if !slices.IsSortedFunc(f.Tries, func(a, b api.FewTry) int {
		if score(a) < score(b) {
			return -1
		}
		return 1
	}) || score(f.Chosen) != score(f.Tries[0]) || score(f.Chosen) > score(f.Against) {
		t.Errorf("tries %+v, chosen %+v", f.Tries, f.Chosen)
	}
	if s := f.Summary; !strings.HasPrefix(s, f.Chosen.Solver+" from sigma ") ||
		!strings.Contains(s, " plain sampler from noise alone") {
		t.Errorf("summary %q", s)
	}
	own := api.Few{Chosen: f.Against, Against: f.Against, Tries: []api.FewTry{f.Against, f.Chosen}}
	if own.Summarize(); !strings.Contains(own.Summary, "no try did better") ||
		!strings.Contains(own.Summary, "next, "+f.Chosen.Solver) {
		t.Errorf("summary %q", own.Summary)
	}
	matched, standard := 0, 0
	for _, q := range f.Tries {
		switch q.Start {
		case api.StartMatched:
			matched++
		case api.StartStandard:
			standard++
		}
		if q.NFE != 3 || !(q.Frequencies > 0 && q.Edges > 0) {
			t.Errorf("try %+v", q)
		}
	}
	if matched != 15 || standard != 4 || f.Against.Start != api.StartStandard {
		t.Errorf("%d tries from the law of the data and %d from noise", matched, standard)
	}
	if f.Chosen.Held == nil || f.Against.Held == nil || !(f.Chosen.ODEError > 0) {
		t.Errorf("held back %+v and %+v", f.Chosen, f.Against)
	}
	// The tries are stored with the schedule, for clients that come later.
	for _, s := range reopen(t, dir, Config{}).catalog.ScheduleInfos() {
		if s.Name == "few" && !reflect.DeepEqual(s.Few, f) {
			t.Errorf("after a restart the tries are %+v, want %+v", s.Few, f)
		}
	}
	got := get(t, e, "Sample", `{"model":"tiny","n":3,"nfe":3,"schedule":"few","dtype":"float32"}`)
	want := get(t, e, "Sample", `{"model":"tiny","n":3,"nfe":3,"schedule":"few","dtype":"float32","solver":"`+
		f.Chosen.Solver+`","start":"`+f.Chosen.Start+`"}`)
	if !slices.Equal(column[float32](got, "sample"), column[float32](want, "sample")) {
		t.Error("the schedule's own solver and start are not the defaults")
	}
	// The solvers that step every frequency by itself are tried beside them: local from noise and from three levels of
	// the law, fitted from the lowest of these but one, and from the next if the first may win.
	all := makeGaussian(t, e, `{"name":"all","kind":"few","model":"tiny","dataset":"smooth","nfe":3,"samples":64,
		"solvers":["ipndm","local","fitted"]}`)
	counts := map[string]int{}
	for _, q := range all.Few.Tries {
		counts[q.Solver]++
	}
	if counts["local"] != 4 || counts["fitted"] < 1 || counts["fitted"] > 2 || all.Few.Against.Solver != "ipndm" {
		t.Errorf("tried %v against %+v", counts, all.Few.Against)
	}
	got = get(t, e, "Sample", `{"model":"tiny","n":3,"nfe":3,"schedule":"all","dtype":"float32"}`)
	want = get(t, e, "Sample", `{"model":"tiny","n":3,"nfe":3,"schedule":"all","dtype":"float32","solver":"`+
		all.Few.Chosen.Solver+`"}`)
	if !slices.Equal(column[float32](got, "sample"), column[float32](want, "sample")) {
		t.Error("the schedule's own solver is not the default")
	}
	t.Logf("chosen %+v of all", all.Few.Chosen)
	_, err := perform(t.Context(), e, "MakeSchedule", `{"name":"x","kind":"few","model":"tiny","dataset":"smooth","nfe":3,
		"solvers":["fitted"]}`, nil)
	wantCode(t, "nothing to compare with", err, api.BadRequest)
	again := makeGaussian(t, e, `{"name":"again","kind":"few","model":"tiny","dataset":"smooth","nfe":3,"samples":64,
		"solvers":["ipndm","dpmpp2m"]}`)
	if !slices.EqualFunc(again.Few.Tries, f.Tries, func(a, b api.FewTry) bool { return score(a) == score(b) }) {
		t.Error("the same request has made another choice")
	}
}

// Tries that cannot win are dropped early and named last, with the number of samples that they were measured on; the
// progress runs once from nothing to all.
func TestFewDropsWhatCannotWin(t *testing.T) {
	dir := t.TempDir()
	small := strings.Replace(tiny, `"img_resolution":8`, `"img_resolution":4`, 1)
	writeModel(t, filepath.Join(dir, "models", "tiny"), small, 1)
	e := reopen(t, dir, Config{Device: devicetest.Open(t)})
	putSmoothOf(t, e, "smooth", 96, 4)
	last, total := 0, 0
	reply, err := perform(t.Context(), e, "MakeSchedule", `{"name":"few","kind":"few","model":"tiny","dataset":"smooth",
		"nfe":3,"samples":512,"solvers":["ipndm","dpmpp2m","fitted"]}`, func(m api.Meta) {
		if m["event"] != "progress" {
			return
		}
		done, all := m["step"].(int), m["steps"].(int)
		if done < last || done > all || total != 0 && all != total {
			t.Errorf("progress %d of %d after %d of %d", done, all, last, total)
		}
		last, total = done, all
	})
	if err != nil {
		t.Fatal(err)
	}
	if last == 0 || last != total {
		t.Errorf("progress ends with %d of %d", last, total)
	}
	few := reply.(api.ScheduleInfo).Few
	counts := map[int]int{}
	for i, q := range few.Tries {
		counts[q.Samples]++
		if i > 0 && q.Samples > few.Tries[i-1].Samples {
			t.Errorf("try %d saw %d samples, the one before %d", i, q.Samples, few.Tries[i-1].Samples)
		}
	}
	// All but the ten best and the four from noise are dropped after 128 samples, and of these all but the three best and
	// two from noise after 256.
	whole, half := counts[512], counts[256]+counts[512]
	if len(few.Tries) < 20 || whole < 3 || whole > 5 || half < 10 || half > 14 || counts[128]+half != len(few.Tries) {
		t.Errorf("%d tries by their samples: %v", len(few.Tries), counts)
	}
	if few.Chosen.Samples != 512 || few.Against.Samples != 512 {
		t.Errorf("chosen %+v against %+v", few.Chosen, few.Against)
	}
}
