package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
)

func TestSampleRows(t *testing.T) {
	a := get(t, open(t), "Sample", `{"model":"tiny","n":11,"seed":42,"steps":3,"dtype":"float32"}`)
	if !slices.Equal(column[int32](a, "nfe"), slices.Repeat([]int32{6}, 11)) {
		t.Errorf("nfe %v, want 6 each: Heun's midpoint form costs two a step", column[int32](a, "nfe"))
	}
	for i := range 11 {
		if column[int64](a, "index")[i] != int64(i) || column[uint64](a, "seed")[i] != 42+uint64(i) ||
			column[int32](a, "step")[i] != -1 {
			t.Fatalf("row %d: index, seed and step are wrong", i)
		}
		if got, want := column[int32](a, "label")[i], latent.Label(42+uint64(i), 3); got != want {
			t.Errorf("label %d is %d, want %d: drawn from seed + i", i, got, want)
		}
	}
}

func TestSampleFormats(t *testing.T) {
	e := open(t)
	const body = `{"model":"tiny","labels":[0,-1,2],"steps":2,"dtype":%q,"layout":%q}`
	raw := get(t, e, "Sample", fmt.Sprintf(body, "float32", "HWC"))
	bytes := get(t, e, "Sample", fmt.Sprintf(body, "uint8", "CHW"))
	if got := bytes.schema.Columns[5]; !slices.Equal(got.Shape, []int{1, 8, 8}) ||
		!slices.Equal(got.DimNames, []string{"C", "H", "W"}) {
		t.Errorf("column %+v", got)
	}
	if !slices.Equal(column[int32](raw, "label"), []int32{0, -1, 2}) {
		t.Errorf("labels %v", column[int32](raw, "label"))
	}
	for i, x := range column[float32](raw, "sample") {
		want := min(max(math.RoundToEven(127.5*float64(x)+127.5), 0), 255)
		if got := column[uint8](bytes, "sample")[i]; float64(got) != want { // one channel: both layouts are one order
			t.Fatalf("value %d: %v became %d", i, x, got)
		}
	}
	for _, key := range []string{"request", "model", "version", "weights"} {
		if raw.schema.Metadata[key] == "" {
			t.Errorf("the schema's metadata lacks %q", key)
		}
	}
}

func TestSamplePreviewsAndBatches(t *testing.T) {
	e := open(t)
	r := get(t, e, "Sample", `{"model":"tiny","n":3,"steps":5,"second_point":"endpoint","every":2,"batch_bytes":200}`)
	steps := map[int32]int{}
	nfe := map[int32]int32{}
	for i, s := range column[int32](r, "step") {
		steps[s]++
		nfe[s] = column[int32](r, "nfe")[i]
	}
	if want := map[int32]int{0: 3, 2: 3, 4: 3, -1: 3}; !reflect.DeepEqual(steps, want) {
		t.Errorf("rows by step %v, want %v", steps, want)
	}
	if want := map[int32]int32{0: 2, 2: 6, 4: 9, -1: 9}; !reflect.DeepEqual(nfe, want) {
		t.Errorf("nfe by step %v, want %v", nfe, want)
	}
	for _, event := range r.events {
		if event.Batch != nil && event.Batch.Rows != 2 && event.Batch.Rows != 1 {
			t.Errorf("a batch of %d rows of 92 bytes, 200 were asked for", event.Batch.Rows)
		}
	}
}

func TestSampleRejects(t *testing.T) {
	e := open(t)
	for body, code := range map[string]api.Code{
		`{"model":"nobody","n":1,"steps":2}`:                            api.ModelNotFound,
		`{"model":"../tiny","n":1,"steps":2}`:                           api.ModelNotFound,
		`{"model":"tiny","labels":[3],"steps":2}`:                       api.BadRequest,
		`{"model":"tiny","labels":[-2],"steps":2}`:                      api.BadRequest,
		`{"model":"tiny","n":1,"steps":2,"schedule":"nobody"}`:          api.ScheduleNotFound,
		`{"model":"tiny","n":1,"steps":2,"grid":"geodesic"}`:            api.BadRequest,
		`{"model":"tiny","n":1,"steps":2,"order":3}`:                    api.BadRequest,
		`{"model":"tiny","n":1000000000000,"steps":2}`:                  api.TooLarge,
		`{"model":"tiny","n":9223372036854775807,"steps":2}`:            api.TooLarge,
		`{"model":"tiny","n":100000,"steps":100000,"every":1}`:          api.TooLarge,
		`{"model":"tiny","n":1,"steps":2,"batch_bytes":10000000000000}`: api.TooLarge,
	} {
		refuse(t, e, "Sample", body, code)
	}
	refuse(t, e, "Nonsense", "", api.OpNotFound) // unknown operation
}

func TestRefusedExchangesAreOver(t *testing.T) {
	e := open(t)
	in := labelled(tables.ImageColumn("latent", api.Float32, data.HWC, 8, 8, 1))
	_, err := openExchange(t.Context(), e, "Sample", `{"model":"tiny","steps":2}`, api.Schema{Columns: in.Columns[:1]})
	wantCode(t, "a missing column", err, api.BadTensor)
	wide := labelled(tables.ImageColumn("latent", api.Float32, data.HWC, 8, 9, 1))
	_, err = openExchange(t.Context(), e, "Sample", `{"model":"tiny","steps":2}`, wide)
	wantCode(t, "another size", err, api.BadTensor)
	for _, more := range []string{`"n":3`, `"labels":[1]`} {
		_, err := openExchange(t.Context(), e, "Sample", `{"model":"tiny","steps":2,`+more+`}`, in)
		wantCode(t, more, err, api.BadRequest)
	}
	if n := e.active.Load(); n != 0 {
		t.Errorf("%d requests are active after refusals", n)
	}
}

// One pair of programs serves every solver, number of steps, schedule on the same basis and mix of classes.
func TestSamplingCompilesOnce(t *testing.T) {
	e := open(t)
	act(t, e, "MakeSchedule", `{"name":"steep","kind":"log-linear","T":100,"knots":5}`)
	byClass := knots(knot{0, 0, 0, 1e-4}, knot{0, 0, 10, 10}, knot{1, 0, 0, 1e-3}, knot{1, 0, 10, 10},
		knot{2, 0, 0, 1e-5}, knot{2, 0, 10, 10})
	upload(t, e, `{"op":"PutSchedule","name":"by-class"}`, scheduleTable, byClass)
	get(t, e, "Sample", `{"model":"tiny","n":3,"solver":"euler","steps":2}`)
	compiled := e.device.opened().Stats().Compiled
	for _, solver := range api.Solvers {
		get(t, e, "Sample", `{"model":"tiny","labels":[2,0,-1,1],"nfe":5,"solver":"`+solver+`"}`)
	}
	for _, more := range []string{
		`"steps":2,"schedule":"steep"`, `"steps":3,"schedule":"by-class"`, `"steps":2,"every":2`, `"steps":2,"S_churn":2`,
		`"solver":"ipndm","nfe":4,"warmup":"heun"`, `"nfe":3,"solver":"unipc","dtype":"float32"`,
	} {
		get(t, e, "Sample", `{"model":"tiny","labels":[2,0],`+more+`}`)
	}
	if n := e.device.opened().Stats().Compiled; n != compiled {
		t.Errorf("%d programs were compiled anew", n-compiled)
	}
}

// A preview is the denoised estimate: that of the last evaluation is where denoise_to_zero ends. Evaluations are
// counted as they are made, whatever the options.
func TestPreviewsAreDenoised(t *testing.T) {
	e := open(t)
	for options, nfe := range map[string]int32{
		`"solver":"ab","warmup":"heun"`: 3, `"solver":"dpmpp2m"`: 3, `"solver":"heun","S_churn":1`: 6,
	} {
		r := get(t, e, "Sample",
			`{"model":"tiny","n":1,"steps":3,"every":1,"denoise_to_zero":true,"dtype":"float32",`+options+`}`)
		last := r.n - 1
		if step := column[int32](r, "step"); step[last] != -1 || step[last-1] != 2 {
			t.Fatalf("%s: steps %v", options, step)
		}
		if got := column[int32](r, "nfe"); got[last] != nfe || got[last-1] != nfe {
			t.Errorf("%s: evaluations %v, want %d", options, got, nfe)
		}
		x := column[float32](r, "sample")
		for i := range 64 {
			if preview, final := x[64*(last-1)+i], x[64*last+i]; math.Abs(float64(preview-final)) > 1e-4 {
				t.Fatalf("%s: the last preview has %g, the denoised sample %g", options, preview, final)
			}
		}
	}
}

// Parts of a request are, one after the other, its very bytes: index, seed, label and pixels.
func TestPartsAreTheWhole(t *testing.T) {
	e := reopen(t, foldertest.New(t), Config{Device: devicetest.Open(t)}) // XLA: it evaluates often
	labels := make([]int32, 150)
	for i := range labels {
		labels[i] = int32(i % 3)
	}
	for name, whole := range map[string]map[string]any{
		"n":      {"n": 150},
		"labels": {"labels": labels, "offset": 5},
		"every":  {"n": 70, "every": 1},
	} {
		whole["model"], whole["seed"], whole["steps"], whole["dtype"] = "tiny", 0, 2, "float32"
		text := func(m map[string]any) string {
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		whole["seed"] = json.Number("18446744073709551600") // which wraps around on the way
		job, err := prepare(t.Context(), e, "Sample", text(whole))
		if err != nil {
			t.Fatal(err)
		}
		want := get(t, e, "Sample", text(whole))
		got := &rows{schema: want.schema, cols: map[string]any{}}
		for first := 0; first < job.Samples; first += api.PartSize {
			part := maps.Clone(whole)
			for field, value := range job.Part(first, min(api.PartSize, job.Samples-first)) {
				if part[field] = value; value == nil {
					delete(part, field)
				}
			}
			one := get(t, e, "Sample", text(part))
			batch := api.Batch{Rows: len(column[int64](one, "index"))}
			for _, c := range want.schema.Columns {
				batch.Cols = append(batch.Cols, one.cols[c.Name])
			}
			if err := got.add(api.Event{Batch: &batch}); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(got.cols, want.cols) {
			t.Errorf("%s: the parts differ from the whole", name)
		}
	}
	refuse(t, e, "Sample", `{"model":"tiny","n":1,"steps":1,"weights":"abc"}`, api.ModelNotFound) // other weights
}
