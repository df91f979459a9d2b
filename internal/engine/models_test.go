package engine

import (
	"errors"
	"log/slog"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Every operation of the contract is served in exactly the ways that it lists, and nothing else is.
func TestOperationsAreAllServed(t *testing.T) {
	e := open(t)
	for _, op := range api.Operations() {
		h := e.handlers[op.Name]
		for way, served := range map[api.Way]bool{
			api.ByAction: h.action != nil || h.job != nil && op.By(api.ByAction), api.ByGet: h.job != nil,
			api.ByExchange: h.exchange != nil, api.ByPut: h.upload != nil,
		} {
			if served != op.By(way) {
				t.Errorf("%s is served as an %s: %v, listed: %v", op.Name, way, served, op.By(way))
			}
		}
		if h.job != nil != op.Rows && h.exchange == nil {
			t.Errorf("%s gives rows: %v, listed: %v", op.Name, h.job != nil, op.Rows)
		}
	}
	for name := range e.handlers {
		if api.Operations().Named(name) == nil {
			t.Errorf("%s is served and not listed", name)
		}
	}
}

// Every handler takes the requests that its operation makes: else the assertion of their type panics.
func TestHandlersTakeTheirRequests(t *testing.T) {
	e := open(t)
	for name, h := range e.handlers {
		req := api.Operations().Named(name).New()
		api.SetDefaults(req)
		if r, ok := req.(*api.OfferNetwork); ok { // handlers see requests that are valid
			r.Shape = []int{1, 1, 1}
		}
		if h.action != nil && name != "MakeSchedule" { // which has a request for each kind
			_, _ = h.action(t.Context(), req, func(api.Meta) {})
		}
		if h.job != nil {
			_, _ = h.job(t.Context(), req)
		}
		if h.exchange != nil {
			_, _ = h.exchange(t.Context(), req, api.Schema{})
		}
		if h.upload != nil {
			_, _ = h.upload(t.Context(), req, api.Schema{})
		}
	}
}

func TestBusy(t *testing.T) {
	dir := t.TempDir()
	e := reopen(t, dir, Config{MaxRequests: 1, MaxWatchers: 2})
	sample, watch := api.Operations().Named("Sample"), api.Operations().Named("WatchRun")
	leave, err := e.enter(sample)
	if err != nil {
		t.Fatal(err)
	}
	refuse(t, e, "ListModels", "", api.Busy) // second
	act(t, e, "ServerInfo", "")
	leave()
	act(t, e, "ListModels", "")

	// Those that watch have a bound of their own and keep nobody from working.
	for range 2 {
		if _, err := e.enter(watch); err != nil {
			t.Fatal(err)
		}
	}
	_, err = e.enter(watch)
	wantCode(t, "a third watcher", err, api.Busy)
	act(t, e, "ListModels", "")
}

// What is stored is listed and described without a device, which a server that cannot open one says when it is needed.
func TestMetadataNeedsNoDevice(t *testing.T) {
	dir := foldertest.New(t)
	want := act(t, reopen(t, dir, Config{}), "DescribeModel", `{"model":"tiny"}`)
	e, err := Open(t.Context(), Config{
		Dir: dir, Logger: slog.New(slog.DiscardHandler),
		OpenDevice: func() (*device.Device, error) {
			return nil, errors.New("there is no device")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	putImages(t, e, "noise", 5)
	got := act(t, e, "DescribeModel", `{"model":"tiny"}`)
	for _, field := range []string{"hash", "parameters", "version", "precision", "model_type"} {
		if got[field] != want[field] {
			t.Errorf("%s is %v, with a device %v", field, got[field], want[field])
		}
	}
	for _, name := range []string{"ServerInfo", "ListModels", "ListSchedules", "ListBases", "ListDatasets", "ListRuns"} {
		act(t, e, name, "")
	}
	act(t, e, "MakeSchedule", `{"name":"s","kind":"edm"}`)
	act(t, e, "LoadModel", `{"name":"tiny"}`)
	get(t, e, "EvaluateSchedule", `{"schedule":"tiny"}`)
	if flights := e.List(t.Context()); len(flights) != 3 {
		t.Errorf("listed %v", flights)
	}
	refuse(t, e, "Sample", `{"model":"tiny","n":1,"steps":2}`, api.Internal) // a sample
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The server's precision is that of models and runs that name none. One loaded at another is computed at that, and
// everything says which.
func TestPrecision(t *testing.T) {
	dir := foldertest.New(t)
	e := reopen(t, dir, Config{Precision: kernels.BFloat16})
	if p := act(t, e, "ServerInfo", `{}`)["precision"]; p != "bfloat16" {
		t.Errorf("ServerInfo says %v", p)
	}
	describe := func(version float64, precision string) {
		t.Helper()
		if m := act(t, e, "DescribeModel", `{"model":"tiny"}`); m["precision"] != precision || m["version"] != version {
			t.Errorf("the model is version %v at %v, want %v at %s", m["version"], m["precision"], version, precision)
		}
	}
	sample := func() []float64 {
		t.Helper()
		r := get(t, e, "Sample", `{"model":"tiny","n":2,"steps":4,"seed":3,"dtype":"float32"}`)
		var x []float64
		for _, v := range column[float32](r, "sample") {
			x = append(x, float64(v))
		}
		return x
	}
	describe(1, "bfloat16")
	rough := sample()
	if !slices.Equal(rough, sample()) {
		t.Error("the same samples twice differ")
	}
	act(t, e, "LoadModel", `{"name":"tiny","precision":"float32"}`)
	describe(2, "float32")
	for range 2 { // named or not, the same again changes nothing
		act(t, e, "LoadModel", `{"name":"tiny"}`)
		act(t, e, "LoadModel", `{"name":"tiny","precision":"float32"}`)
	}
	describe(2, "float32")
	exact := sample()
	if d := floats.Distance(rough, exact, 2) / floats.Norm(exact, 2); !(d > 1e-5 && d < 0.05) {
		t.Errorf("samples in bfloat16 are %.2g from float32's, want some difference, at most 0.05", d)
	}

	newRun(t, e, "default", "")
	newRun(t, e, "own", `,"precision":"float32"`)
	for run, want := range map[string]string{"default": "bfloat16", "own": "float32"} {
		cfg := act(t, e, "GetRun", `{"run":"`+run+`"}`)["config"].(map[string]any)
		if cfg["precision"] != want {
			t.Errorf("the run %q has precision %v, want %s", run, cfg["precision"], want)
		}
	}
	if r := get(t, e, "TrainStep", `{"run":"default"}`); !(column[float64](r, "grad_norm")[0] > 0) {
		t.Error("a step in bfloat16 has no gradient")
	}

	for name, body := range map[string]string{
		"LoadModel": `{"name":"tiny","precision":"float16"}`,
		"CreateRun": `{"name":"x","stage":"isotropic","dataset":"noise","model":"tiny","precision":"half"}`,
	} {
		refuse(t, e, name, body, api.BadRequest)
	}
}

// two is a mixture of two points' clouds in the plane, one per class, on 1×2 pixels.
const two = `{"name":"two","weights":[3,1],"means":[[0.5,0],[-0.5,0.25]],
	"covariances":[[[0.04,0.01],[0.01,0.02]],[[0.01,0],[0,0.03]]],"labels":[0,1]}`

// A mixture is a model like others: it is described, sampled, measured, trained on, saved with what was learned, and
// read again.
func TestMixtureIsAModel(t *testing.T) {
	e := open(t)
	info := act(t, e, "MakeModel", two)
	if info["model_type"] != "Mixture" || info["img_resolution"] != 1.0 || info["img_width"] != 2.0 ||
		info["label_dim"] != 2.0 || info["parameters"] != 16.0 {
		t.Errorf("made %v", info)
	}
	act(t, e, "MakeDataset", `{"name":"clouds","model":"two","n":400,"seed":1}`)
	// Where the noise is far above the data the residual of class 0 tends to nothing, far below to the dimension.
	r := get(t, e, "EvaluateModel",
		`{"model":"two","dataset":"clouds","schedule":{"edm":{"T":400}},"points":8,"samples":64}`)
	residual := column[float64](r, "residual")
	if first, last := residual[0], residual[7]; !(first > last) || last > 0.05 {
		t.Errorf("residuals %v", residual)
	}

	samples := get(t, e, "Sample",
		`{"model":"two","labels":[0,0,0,0,1,1,1,1],"nfe":15,"dtype":"float32","schedule":{"edm":{"T":400}}}`)
	for i, v := range column[float32](samples, "sample") {
		want := []float64{0.5, -0.5}[i/8]
		if i%2 == 0 && math.Abs(float64(v)-want) > 1 {
			t.Errorf("sample %d is at %g, its class at %g", i/2, v, want)
		}
	}

	run := `"stage":"isotropic","dataset":"clouds","model":"two","T":400,"knots":8,"batch":32,"kimg":0.096`
	refuse(t, e, "CreateRun", `{"name":"r",`+run+`}`, api.BadRequest) // a mixture that is to be trained
	act(t, e, "CreateRun", `{"name":"r",`+run+`,"train_network":false,"family":{"per_class":true,"basis":"none"}}`)
	get(t, e, "TrainStep", `{"run":"r","steps":3}`)
	saved := act(t, e, "SaveModel", `{"run":"r","name":"learned"}`)
	if saved["model_type"] != "Mixture" || saved["hash"] != info["hash"] ||
		saved["schedule"].(map[string]any)["per_class"] != true {
		t.Errorf("saved %v, made %v", saved, info)
	}
	again := reopen(t, e.cfg.Dir, Config{})
	if got := act(t, again, "DescribeModel", `{"model":"learned"}`); got["hash"] != info["hash"] {
		t.Errorf("read again: %v", got)
	}
	get(t, again, "TrainStep", `{"run":"r","steps":1}`)
}

// A mixture of a data set's classes takes noise in the subspaces that its covariance knows.
func TestMixtureOfADataSet(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 48)
	for _, covariance := range []string{"dct", "full"} {
		info := act(t, e, "MakeModel", `{"name":"gmm-`+covariance+`","dataset":"smooth","covariance":"`+covariance+`"}`)
		if info["parameters"] != 64.0*66 {
			t.Errorf("%s: made %v", covariance, info)
		}
	}
	// The anisotropic noise of a run: exact on the covariance that is diagonal in the DCT.
	act(t, e, "CreateRun",
		`{"name":"a","stage":"anisotropic","dataset":"smooth","model":"gmm-dct","train_network":false,"T":400,"knots":8,`+
			`"batch":16,"kimg":0.032}`)
	get(t, e, "TrainStep", `{"run":"a","steps":2}`)
	for body, code := range map[string]api.Code{
		`{"name":"x"}`: api.BadRequest,
		`{"name":"x","dataset":"smooth","covariance":"mine"}`: api.BadRequest,
		`{"name":"x","dataset":"smooth","floor":-1}`:          api.BadRequest,
		`{"name":"tiny","means":[[0]],"covariances":[[[1]]]}`: api.NameTaken,
	} {
		refuse(t, e, "MakeModel", body, code)
	}
	refuse(t, e, "MakeDataset", `{"name":"x","model":"tiny","n":3}`, api.BadRequest) // draws from a UNet
}
