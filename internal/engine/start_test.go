package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// startFile returns the start of a schedule, read from its file.
func startFile(t *testing.T, e *Engine, schedule string) (*start.Start, api.SchedulePart) {
	t.Helper()
	reply, err := perform(t.Context(), e, "ExportStart", fmt.Sprintf(`{"schedule":%q}`, schedule), nil)
	if err != nil {
		t.Fatal(err)
	}
	file := reply.(api.SchedulePart)
	s, err := checkpoint.StartFile.Decode(file.File)
	if err != nil {
		t.Fatal(err)
	}
	return s, file
}

// sampled returns float32 samples of a request's fields.
func sampled(t *testing.T, e *Engine, fields string) []float32 {
	t.Helper()
	body := `{"model":"tiny","seed":7,"dtype":"float32","solver":"ipndm","nfe":4,` + fields + `}`
	return column[float32](get(t, e, "Sample", body), "sample")
}

// The start is the schedule's own unless the request says otherwise; a seed's sample does not depend on the batch.
func TestStartIsTheSchedules(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 48)
	makeGaussian(t, e, `{"name":"ours","kind":"start","dataset":"smooth","per_class":true,"sigma_max":2}`)
	own := sampled(t, e, `"n":3,"schedule":"ours"`)
	matched := sampled(t, e, `"n":3,"schedule":"ours","start":"matched"`)
	standard := sampled(t, e, `"n":3,"schedule":"ours","start":"standard"`)
	edm := sampled(t, e, `"n":3,"schedule":{"edm":{"T":4}}`)
	if !slices.Equal(own, matched) || slices.Equal(own, standard) {
		t.Error("a schedule with a start is not sampled from it")
	}
	if slices.Equal(own, edm) {
		t.Error("edm is sampled from another schedule's start")
	}
	if many := sampled(t, e, `"n":8,"schedule":"ours"`); !slices.Equal(many[:len(own)], own) {
		t.Error("samples depend on the batch")
	}
	for fields, want := range map[string]string{
		`"schedule":"edm","start":"matched"`: "start must not be matched on the schedule \"edm\", which carries no law",
		`"schedule":"ours","start":"cold"`:   "start must be one of standard, matched, got \"cold\"",
	} {
		_, err := prepare(t.Context(), e, "Sample", `{"model":"tiny","n":1,"nfe":4,"solver":"ipndm",`+fields+`}`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
}

// A start is listed with the hash of its file, survives a restart and travels to another name.
func TestStartIsStored(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 48)
	made := makeGaussian(t, e, `{"name":"ours","kind":"start","dataset":"smooth","per_class":false}`)
	_, file := startFile(t, e, "ours")
	sum := sha256.Sum256(file.File)
	if want := hex.EncodeToString(sum[:]); made.Start.Hash != want || file.Hash != want {
		t.Errorf("hashes %s and %s of a file of %s", made.Start.Hash, file.Hash, want)
	}
	if made.Start.Covariance != "dct" || made.Start.PerClass || made.Provenance == nil {
		t.Errorf("made %+v", made)
	}
	schedule, err := perform(t.Context(), e, "ExportSchedule", `{"schedule":"ours"}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(schedule)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"name":"copy","file":%s,"start":%q}`, text, base64.StdEncoding.EncodeToString(file.File))
	if _, err := perform(t.Context(), e, "ImportSchedule", body, nil); err != nil {
		t.Fatal(err)
	}
	want := sampled(t, e, `"n":2,"schedule":"ours"`)
	if got := sampled(t, e, `"n":2,"schedule":"copy"`); !slices.Equal(got, want) {
		t.Error("the copy samples otherwise")
	}
	dir := e.cfg.Dir
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	e = reopen(t, dir, Config{})
	if got := sampled(t, e, `"n":2,"schedule":"ours"`); !slices.Equal(got, want) {
		t.Error("a restart changes samples")
	}
	if _, again := startFile(t, e, "copy"); again.Hash != file.Hash {
		t.Error("the copy has another start")
	}
	body = fmt.Sprintf(`{"name":"bad","file":%s,"start":"AAAA"}`, text)
	if _, err := perform(t.Context(), e, "ImportSchedule", body, nil); err == nil ||
		!strings.Contains(err.Error(), "start cannot be used") {
		t.Errorf("a broken start: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 8)
	for fields, want := range map[string]string{
		`"dataset":"none"`:                   "No data set is called",
		`"dataset":"smooth","rank":3`:        "rank is not a field",
		`"dataset":"smooth","sigma_max":-1`:  "sigma_max must be positive",
		`"dataset":"smooth","sigma_max":100`: "sigma_max must lie between the noise levels",
	} {
		_, err := perform(t.Context(), e, "MakeSchedule", `{"name":"x","kind":"start","replace":true,`+fields+`}`, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
	if _, err := perform(t.Context(), e, "ExportStart", `{"schedule":"edm"}`, nil); err == nil ||
		!strings.Contains(err.Error(), "carries no start") {
		t.Errorf("the start of edm: %v", err)
	}
}
