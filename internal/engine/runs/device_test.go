package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/testing/alloctest"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// noiseFolder returns a new data folder with the model "tiny" and the data set "noise" of 24 images.
func noiseFolder(t *testing.T) (dir string) {
	t.Helper()
	dir = foldertest.New(t)
	foldertest.Dataset(t, filepath.Join(dir, "datasets", "noise"), 24, true)
	return dir
}

// onDevice opens the runs of a data folder, which train on a device, nil for the shared one.
func onDevice(t *testing.T, dir string, dev *device.Device, world *processes.World) *Runs {
	t.Helper()
	if dev == nil {
		dev = devicetest.Fast(t)
	}
	quiet, open := slog.New(slog.DiscardHandler), func() (*device.Device, error) { return dev, nil }
	c, err := catalog.Open(t.Context(), catalog.Config{Dir: dir, Logger: quiet, Device: open})
	if err != nil {
		t.Fatal(err)
	}
	s := Open(Config{
		Catalog: c, Batcher: batch.New(batch.NewQueue(4), false), Device: open, Precision: kernels.Float32, Logger: quiet,
		World: world, Version: "test", MaxBytes: 1 << 30,
	})
	t.Cleanup(func() { _ = s.Close(context.Background()); c.Close() })
	return s
}

// createOf creates a run of a request's fields.
func (s *Runs) createOf(t *testing.T, fields string) (api.RunInfo, error) {
	t.Helper()
	req := apitest.Request[api.CreateRun](t, "CreateRun", "{"+fields+"}")
	return s.Create(t.Context(), req, func(api.Meta) {})
}

// mustCreate creates a run on the data set "noise" from the model "tiny".
func (s *Runs) mustCreate(t *testing.T, name, more string) api.RunInfo {
	t.Helper()
	info, err := s.createOf(t, fmt.Sprintf(`"name":%q,"stage":"isotropic","dataset":"noise","model":"tiny","batch":8,`+
		`"knots":6,"T":100,"init":"edm","kimg":1%s`, name, more))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// table holds the float64 columns of a run's rows by name.
type table struct {
	schema  api.Schema
	columns map[string][]float64
}

func newTable(schema api.Schema) table { return table{schema, map[string][]float64{}} }

func (v table) add(e api.Event) error {
	for i, c := range v.schema.Columns {
		if e.Batch != nil && c.Type == api.Float64 {
			v.columns[c.Name] = append(v.columns[c.Name], e.Batch.Cols[i].([]float64)...)
		}
	}
	return nil
}

// step takes n steps of a run and returns their rows.
func (s *Runs) step(t *testing.T, run string, n int) (table, error) {
	t.Helper()
	job, err := s.TrainSteps(t.Context(), api.TrainStep{Run: run, Steps: n})
	if err != nil {
		return table{}, err
	}
	rows := newTable(job.Schema)
	return rows, job.Run(t.Context(), rows.add)
}

func TestCreateRunRefused(t *testing.T) {
	dir := noiseFolder(t)
	foldertest.Dataset(t, filepath.Join(dir, "datasets", "unlabelled"), 4, false)
	s := onDevice(t, dir, nil, nil)
	s.mustCreate(t, "r", "")
	_, err := s.createOf(t, `"name":"r","stage":"isotropic","dataset":"noise","model":"tiny"`)
	wantCode(t, "taken", err, api.NameTaken)
	axis := func(size, pixel int) []float64 {
		v := make([]float64, size*size)
		v[pixel] = 1
		return v
	}
	for name, of := range map[string]struct {
		size    int
		vectors map[int][][]float64
	}{
		"two":   {8, map[int][][]float64{0: {axis(8, 0)}, 1: {axis(8, 9)}}},
		"small": {4, map[int][][]float64{basis.Shared: {axis(4, 0)}}},
	} {
		b, err := basis.Dense(of.size, of.size, of.vectors)
		if err == nil {
			_, err = s.cfg.Catalog.StoreBasis(name, b, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const iso, aniso = `"stage":"isotropic","model":"tiny"`, `"stage":"anisotropic","model":"tiny"`
	for _, q := range []struct {
		fields string
		code   api.Code
		says   string
	}{
		{iso, api.BadRequest, "dataset"},
		{iso + `,"dataset":"noise","batch":0`, api.BadRequest, "batch"},
		{iso + `,"dataset":"noise","family":{"basis":"dct","kk":1}`, api.BadRequest, "kk"},
		{iso + `,"dataset":"noise","precision":"half"`, api.BadRequest, "precision"},
		{`"stage":"pretrain","dataset":"noise","network":{"model_type":"Nothing"}`, api.BadRequest, "Nothing"},
		{iso + `,"dataset":"none-here"`, api.DatasetNotFound, "none-here"},
		{`"stage":"isotropic","dataset":"noise","model":"nobody"`, api.ModelNotFound, "nobody"},
		{iso + `,"dataset":"noise","schedule":"nobody"`, api.ScheduleNotFound, "nobody"},
		{aniso + `,"dataset":"noise","family":{"basis":"nobody"}`, api.BasisNotFound, "nobody"},
		{aniso + `,"dataset":"noise","family":{"basis":"dct","cuts":[2,8]}`, api.BadRequest, "cut 8"},
		{aniso + `,"dataset":"noise","family":{"basis":"two"}`, api.BadRequest, "class 2"},
		{aniso + `,"dataset":"noise","family":{"basis":"small"}`, api.BadRequest, "4×4"},
		{aniso + `,"dataset":"unlabelled","family":{"basis":"pca_per_class"}`, api.BadRequest, "must have a label"},
	} {
		_, err := s.createOf(t, `"name":"s",`+q.fields)
		wantCode(t, q.fields, err, q.code, q.says)
	}
	if left, err := os.ReadDir(s.root()); err != nil || len(left) != 1 {
		t.Errorf("runs folder: %v, %v", left, err)
	}
}

// A run is told how its steps fit, trains in parts if the whole batch does not, and is refused with both numbers if
// nothing does.
func TestRunsFitTheMemory(t *testing.T) {
	dir := noiseFolder(t)
	whole := onDevice(t, dir, devicetest.Limited(t, 1<<30), nil).mustCreate(t, "whole", "").Memory
	if whole.Microbatch != 8 || whole.NeededBytes <= 0 || whole.AvailableBytes <= 0 || whole.WholeBytes != 0 {
		t.Errorf("with plenty: %+v", whole)
	}
	tight := onDevice(t, noiseFolder(t), devicetest.Limited(t, whole.NeededBytes*3/4), nil)
	parts := tight.mustCreate(t, "parts", "").Memory
	if m := named(t, tight, "parts").cfg.Microbatch; parts.Microbatch != 4 || m != 4 ||
		parts.NeededBytes > parts.AvailableBytes || parts.WholeBytes != whole.NeededBytes {
		t.Errorf("with three quarters: %+v, microbatch %v", parts, m)
	}
	if rows, err := tight.step(t, "parts", 2); err != nil || len(rows.columns["loss"]) != 2 {
		t.Errorf("%d steps in parts, %v", len(rows.columns["loss"]), err)
	}
	scarce := onDevice(t, noiseFolder(t), devicetest.Limited(t, 64<<10), nil)
	_, err := scarce.createOf(t, `"name":"r","stage":"isotropic","dataset":"noise","model":"tiny","batch":8`)
	wantCode(t, "scarce", err, api.TooLarge, "in microbatches of 1 needs an estimated 0.4 MiB", "memory_limit")
}

// A network whose values cannot fit is refused before they are drawn.
func TestNetworksAreWeighedBeforeTheyAreMade(t *testing.T) {
	s := onDevice(t, noiseFolder(t), devicetest.Limited(t, 256<<20), nil)
	var err error
	took := alloctest.Bytes(func() {
		_, err = s.createOf(t, `"name":"r","stage":"pretrain","dataset":"noise","batch":8,
			"network":{"model_type":"SongUNet","embedding_type":"positional","encoder_type":"standard",
			"decoder_type":"standard","img_resolution":8,"img_channels":1,"label_dim":1048576,"augment_dim":0,
			"model_channels":128,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`)
	})
	wantCode(t, "a network of 2 GB", err, api.TooLarge)
	if took > 64<<20 {
		t.Errorf("it took %d MiB to say so", took>>20)
	}
}

// A run goes on with the images that it was started with, and no others.
func TestResumeOnOtherImages(t *testing.T) {
	dir := noiseFolder(t)
	s := onDevice(t, dir, nil, nil)
	s.mustCreate(t, "r", "")
	_, err := s.step(t, "r", 1)
	if err := errors.Join(err, s.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	w, err := s.cfg.Catalog.CreateDataset("noise", data.Form{
		Height: 8, Width: 8, Channels: 1, Float: true, Labels: true,
	}, 24)
	if err == nil {
		err = errors.Join(w.Float32(make([]float32, 24*64), make([]int32, 24)), w.Commit(true))
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = onDevice(t, dir, nil, nil).step(t, "r", 1)
	wantCode(t, "other images", err, api.BadRequest, "other images")
}

// A step on the bytes that the run itself would draw next is the run's own step, bit for bit.
func TestTrainStepOnTheRunsOwnBytes(t *testing.T) {
	const n, size = 24, 64
	dir := foldertest.New(t)
	pixels, classes := make([]uint8, n*size), make([]int32, n)
	for i := range pixels {
		pixels[i] = uint8(i * 37)
	}
	for i := range classes {
		classes[i] = int32(i % 3)
	}
	s := onDevice(t, dir, nil, nil)
	w, err := s.cfg.Catalog.CreateDataset("noise", data.Form{Height: 8, Width: 8, Channels: 1, Labels: true}, n)
	if err == nil {
		err = errors.Join(w.Uint8(pixels, classes), w.Commit(false))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.mustCreate(t, "own", `,"seed":5`)
	s.mustCreate(t, "sent", `,"seed":5`)
	want, err := s.step(t, "own", 3)
	if err != nil {
		t.Fatal(err)
	}
	req := api.TrainStep{Run: "sent", Steps: 1}
	in := func(layout data.Layout, width int) api.Schema {
		return api.Schema{Columns: []api.Column{
			tables.ImageColumn("image", api.Uint8, layout, 8, width, 1), {Name: "label", Type: api.Int32},
		}}
	}
	_, err = s.TrainOn(t.Context(), req, in(data.CHW, 9))
	wantCode(t, "images of another size", err, api.BadTensor)
	x, err := s.TrainOn(t.Context(), req, in(data.HWC, 8))
	if err != nil {
		t.Fatal(err)
	}
	got, order := newTable(x.Out), data.NewOrder(5, n, false)
	for step := range 3 {
		images, labels := []uint8(nil), make([]int32, 8)
		for k := range labels {
			at, _ := order.At(uint64(step*8 + k))
			images, labels[k] = append(images, pixels[at*size:(at+1)*size]...), classes[at]
		}
		if err := x.Do(t.Context(), api.Batch{Rows: 8, Cols: []any{images, labels}}, got.add); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.End(t.Context()); err != nil { // which stores the steps
		t.Fatal(err)
	}
	if info := named(t, s, "sent").Info(); info.Step != 3 || info.StoredStep != 3 {
		t.Errorf("step %v, stored %v", info.Step, info.StoredStep)
	}
	for _, name := range []string{"loss", "energy", "grad_norm", "schedule_grad_norm"} {
		a, b := got.columns[name], want.columns[name]
		same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
		if len(b) != 3 || !slices.EqualFunc(a, b, same) {
			t.Errorf("%s: %v on bytes that were sent, %v on the run's own", name, a, b)
		}
	}
}

// A network whose weights and losses are finite may overflow at other noise levels than those of its losses.
func TestSaveAsksTheNetwork(t *testing.T) {
	dir := noiseFolder(t)
	net, err := unet.Parse([]byte(foldertest.Tiny))
	if err != nil {
		t.Fatal(err)
	}
	values := net.Init(1)
	for i, p := range net.Params() {
		for k := range values[i] {
			switch {
			case p.Name == "model.map_layer0.weight" && k%8 == 0: // of sin(ln σ/4), which changes its sign at σ = 1
				values[i][k] = 1e25
			case p.Name == "model.map_layer0.weight", p.Name == "model.map_label.weight":
				values[i][k] = 0
			case p.Name == "model.map_layer1.weight":
				values[i][k] = 1e25
			}
		}
	}
	wild := &checkpoint.Model{Net: net, Values: values}
	if err := checkpoint.SaveModel(filepath.Join(dir, "models", "wild"), wild, false); err != nil {
		t.Fatal(err)
	}
	s := onDevice(t, dir, nil, nil)
	for name, model := range map[string]string{"wild": "wild", "calm": "tiny"} {
		_, err := s.createOf(t, fmt.Sprintf(
			`"name":%q,"stage":"pretrain","dataset":"noise","batch":8,"kimg":1,"p_mean":-3,"p_std":0.1,"model":%q`, name, model))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := s.step(t, name, 1)
		if loss := rows.columns["loss"]; err != nil || math.IsNaN(loss[0]) || math.IsInf(loss[0], 0) {
			t.Fatalf("%s: the loss at σ = 0.05 is %v, %v", name, loss, err)
		}
	}
	save := func(run string, force bool) error {
		_, err := s.SaveModel(t.Context(), api.SaveModel{Run: run, Name: run + "-saved", Force: force})
		return err
	}
	wantCode(t, "an overflow", save("wild", false), api.NotFinite, "the answer of the network at noise level 1.")
	_, err = s.cfg.Catalog.Model("wild-saved")
	wantCode(t, "what was not saved", err, api.ModelNotFound)
	if err := errors.Join(save("wild", true), save("calm", false)); err != nil {
		t.Error(err)
	}
}

func TestSaveModelRules(t *testing.T) {
	s := onDevice(t, noiseFolder(t), nil, nil)
	s.mustCreate(t, "r", "")
	if _, err := s.step(t, "r", 2); err != nil {
		t.Fatal(err)
	}
	save := func(run, name string, replace bool) (api.ModelInfo, error) {
		return s.SaveModel(t.Context(), api.SaveModel{Run: run, Name: name, Replace: replace})
	}
	// A run from a model has a half-life of 500 kimg, which is long for what it has seen.
	if info, err := save("r", "m", false); err != nil || !strings.Contains(info.Warning, "ema_rampup 0.05") {
		t.Errorf("the warning is %q, %v", info.Warning, err)
	}
	for _, q := range []struct {
		run, name string
		replace   bool
		code      api.Code
	}{
		{"r", "edm", true, api.BadRequest},
		{"x", "m2", false, api.RunNotFound},
		{"r", "m", false, api.NameTaken},
		{"r", "tiny", false, api.NameTaken},
	} {
		_, err := save(q.run, q.name, q.replace)
		wantCode(t, q.run+" as "+q.name, err, q.code)
	}
	if info, err := save("r", "m", true); err != nil || info.Version != 2 || info.Schedule.T != 100 {
		t.Errorf("saved as %+v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Catalog.Folders().Models, "m", "schedule.json")); err != nil {
		t.Error(err)
	}
}

// A watcher of a run that was only created waits; its cancellation ends it.
func TestWatchIsCancelled(t *testing.T) {
	_, r := made(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantCode(t, "past its deadline", r.watch(ctx, 0, false, ignore), api.DeadlineExceeded)
}
