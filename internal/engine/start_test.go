package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
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

// A sample from the matched start is the one that the standard start makes of the latent M^-½ x_T, with x_T from the
// schedule's file: isotropic noise, noise of two levels, and a basis that mixes frequencies.
func TestSampleStartsFromTheFile(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 48)
	for _, q := range []struct{ name, fields string }{
		{"iso", `"sigma_max":4`},
		{"two", `"schedule":"ends"`},
		{"mixing", `"schedule":"wavelet"`},
	} {
		t.Run(q.name, func(t *testing.T) {
			b, init := basis.None(8, 8), []float64{4}
			var err error
			switch q.name {
			case "two":
				b, err = basis.DCT(8, 8, 16)
				init = []float64{4, 1.5}
				table := knots(knot{-1, 0, 0, 1e-6}, knot{-1, 0, 1, 16}, knot{-1, 1, 0, 1e-6}, knot{-1, 1, 1, 2.25})
				if _, err := put(e, `{"op":"PutSchedule","name":"ends","basis":"dct"}`, scheduleTable, table); err != nil {
					t.Fatal(err)
				}
			case "mixing":
				b, err = basis.Haar(8, 8, 16)
				init = []float64{5, 2}
				table := knots(knot{-1, 0, 0, 1e-6}, knot{-1, 0, 1, 25}, knot{-1, 1, 0, 1e-6}, knot{-1, 1, 1, 4})
				if _, err := put(e, `{"op":"PutSchedule","name":"wavelet","basis":"haar"}`, scheduleTable, table); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			info := makeGaussian(t, e, fmt.Sprintf(`{"name":%q,"kind":"start","dataset":"smooth",%s}`, q.name, q.fields))
			if info.Start == nil || info.Start.Images != 48 || info.J != b.J() {
				t.Fatalf("made %+v", info)
			}
			s, _ := startFile(t, e, q.name)
			g := make([]float64, len(init))
			for j, v := range init {
				g[j] = v * v
			}
			root, err := s.Law(start.Shared).Root(b, start.Shared, g)
			if err != nil {
				t.Fatal(err)
			}
			got := sampled(t, e, fmt.Sprintf(`"labels":[0,2],"schedule":%q`, q.name))

			latents := make([]float32, 128)
			for i := range 2 {
				xi := make([]float32, 64)
				latent.Normal(7+uint64(i), latent.StreamLatent, xi)
				root.DrawFloat32(xi)
				unscaled(t, b, init, xi)
				copy(latents[i*64:], xi)
			}
			in := api.Schema{Columns: []api.Column{
				{Name: "label", Type: api.Int32}, tables.ImageColumn("latent", api.Float32, data.HWC, 8, 8, 1),
			}}
			x, want := converse(t, e, "Sample", fmt.Sprintf(
				`{"model":"tiny","dtype":"float32","solver":"ipndm","nfe":4,"schedule":%q,"start":"standard"}`, q.name), in)
			want.send(t, x, 2, []int32{0, 2}, latents)
			for i, v := range column[float32](want, "sample") {
				if math.Abs(float64(got[i]-v)) > 1e-3 {
					t.Fatalf("value %d is %v, from the file's start %v", i, got[i], v)
				}
			}
		})
	}
}

// unscaled replaces x by Σ_j P_j x / init_j.
func unscaled(t *testing.T, b *basis.Basis, init []float64, x []float32) {
	t.Helper()
	plane, parts := make([]float64, len(x)), make([][]float64, b.J())
	for j := range parts {
		parts[j] = make([]float64, len(x))
	}
	for i, v := range x {
		plane[i] = float64(v)
	}
	if err := b.Split(start.Shared, plane, parts); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		var sum float64
		for j, part := range parts {
			sum += part[i] / init[j]
		}
		x[i] = float32(sum)
	}
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

// Nodes from the start have no price of the start to pay.
func TestSchedulesAreMadeFromTheStart(t *testing.T) {
	e := openXLA(t)
	putSmooth(t, e, "smooth", 48)
	const nodes = `"kind":"gaussian","dataset":"smooth","solver":"dpmpp2m","nfe":4,"T":25`
	noise := makeGaussian(t, e, `{"name":"noise",`+nodes+`}`)
	ours := makeGaussian(t, e, `{"name":"ours","start":{"per_class":false},`+nodes+`}`)
	if noise.Start != nil || ours.Start == nil || !(ours.Bench.Nodes.W2 < noise.Bench.Nodes.W2) {
		t.Errorf("W2² %g from noise, %g from the data's law", noise.Bench.Nodes.W2, ours.Bench.Nodes.W2)
	}
	got := get(t, e, "BenchSchedule", `{"dataset":"smooth","schedules":["ours"],"solvers":["dpmpp2m"],"nfe":[4]}`)
	if own := column[float64](got, "w2_squared")[0]; math.Abs(own-ours.Bench.Nodes.W2) > 1e-9 {
		t.Errorf("W2² %g from the schedule's start, %g when it was made", own, ours.Bench.Nodes.W2)
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
