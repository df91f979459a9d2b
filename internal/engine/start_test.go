package engine

import (
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

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
	act(t, e, "MakeSchedule", `{"name":"ours","kind":"start","dataset":"smooth","per_class":true,"sigma_max":2}`)
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
		`"schedule":"edm","start":"matched"`: "start must not be matched on the schedule \"edm\", which has no law",
		`"schedule":"ours","start":"cold"`:   "start must be one of standard, matched, got \"cold\"",
	} {
		refuse(t, e, "Sample", `{"model":"tiny","n":1,"nfe":4,"solver":"ipndm",`+fields+`}`, api.BadRequest, want)
	}
}

func TestStartRefuses(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 8)
	for fields, want := range map[string]string{
		`"dataset":"smooth","rank":3`:        "rank is not a field",
		`"dataset":"smooth","sigma_max":-1`:  "sigma_max must be positive",
		`"dataset":"smooth","sigma_max":100`: "sigma_max must lie between the noise levels",
	} {
		refuse(t, e, "MakeSchedule", `{"name":"x","kind":"start","replace":true,`+fields+`}`, api.BadRequest, want)
	}
	refuse(t, e, "MakeSchedule", `{"name":"x","kind":"start","dataset":"none"}`, api.DatasetNotFound)
	refuse(t, e, "ExportStart", `{"schedule":"edm"}`, api.BadRequest, "has no start")
}
