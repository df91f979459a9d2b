package train

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/traintest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// TestResumeIsExact: ten steps, and five, stored, loaded and five more, give the same rows and the same state to the
// last bit.
func TestResumeIsExact(t *testing.T) {
	d := tinyData(t, 20) // ten steps of eight cross epochs
	shared := tinyConfig(Isotropic)
	shared.Estimator = "backprop"
	perClass := tinyConfig(Anisotropic)
	perClass.Family = schedule.Family{PerClass: true, Basis: "dct", K: 4}
	perClass.RatioEmbedding, perClass.TrainNetwork = new(true), new(false)
	for _, c := range []struct {
		name string
		cfg  Config
	}{{"pretrain", tinyConfig(Pretrain)}, {"network and schedule", shared}, {"schedules per class", perClass}} {
		t.Run(c.name, func(t *testing.T) {
			whole := start(t, c.cfg, Sources{Dataset: d})
			want := step(t, whole, 10)

			half := start(t, c.cfg, Sources{Dataset: d})
			got := step(t, half, 5)
			again := resume(t, stored(t, half), Sources{Dataset: d})
			if p := again.Progress(); p.Step != 5 || p.Kimg != 0.04 || len(again.Rows(0)) != 5 {
				t.Errorf("resumed at %+v with %d rows", p, len(again.Rows(0)))
			}
			got = append(got, step(t, again, 5)...)
			if !slices.EqualFunc(got, want, equalRows) {
				t.Errorf("rows\n%v\nwant\n%v", got, want)
			}
			sameState(t, stateOf(t, again), stateOf(t, whole))
			if !reflect.DeepEqual(again.Moved(), whole.Moved()) || (whole.Moved() == nil) != (c.cfg.Stage == Pretrain) {
				t.Errorf("moved by %+v, want %+v", again.Moved(), whole.Moved())
			}
		})
	}
}

// TestRowOf: a stored row has a value of each column, in their order.
func TestRowOf(t *testing.T) {
	values := make([]float64, len(RowColumns))
	for i := range values {
		values[i] = float64(i)
	}
	row, err := rowOf(values)
	if err != nil || !slices.Equal(row.Values(), values) || row.Loss != float64(slices.Index(RowColumns, "loss")) ||
		row.MFU != float64(slices.Index(RowColumns, "mfu")) {
		t.Errorf("row %+v, error %v", row, err)
	}
	for _, n := range []int{len(RowColumns) - 1, len(RowColumns) + 1} {
		if _, err := rowOf(make([]float64, n)); err == nil {
			t.Errorf("a row of %d columns is taken", n)
		}
	}
}

// TestIncompleteStateIsRefused: a configuration that leaves a field to its default is none that a run has stored.
func TestIncompleteStateIsRefused(t *testing.T) {
	d := tinyData(t, 24)
	state := stateOf(t, start(t, tinyConfig(Pretrain), Sources{Dataset: d}))
	if _, err := StoredConfig(state.Config); err != nil {
		t.Error(err)
	}
	for _, field := range []string{`"ema_rampup":0.05,`, `"order":2,`, `,"p_std_subspace":0`} {
		without := *state
		without.Config = bytes.Replace(state.Config, []byte(field), nil, 1)
		_, err := Resume(&without, Sources{Device: traintest.Device(t), Dataset: d})
		if stored, ok := errors.AsType[*StateError](err); !ok || !strings.Contains(stored.Msg, "fields are missing") {
			t.Errorf("without %s: %v", field, err)
		}
	}
}

func sameState(t *testing.T, a, b *checkpoint.Run) {
	t.Helper()
	for name, pair := range map[string][2][][]float32{
		"params": {a.Params, b.Params}, "m": {a.M, b.M}, "v": {a.V, b.V}, "ema": {a.EMA, b.EMA},
	} {
		if !slices.EqualFunc(pair[0], pair[1], slices.Equal) {
			t.Errorf("%s differ", name)
		}
	}
	if a.Step != b.Step || a.Seen != b.Seen || a.Position != b.Position || a.Updates != b.Updates ||
		!slices.Equal(a.ThetaUpdates, b.ThetaUpdates) {
		t.Error("counters differ")
	}
	if string(a.Config) != string(b.Config) {
		t.Errorf("configurations differ:\n%s\n%s", a.Config, b.Config)
	}
	if a.Schedule != nil {
		x, y := a.Schedule.Theta(), b.Schedule.Theta()
		for r := range x {
			for j := range x[r] {
				if !slices.Equal(x[r][j], y[r][j]) || !slices.Equal(a.ThetaV[r][j], b.ThetaV[r][j]) {
					t.Errorf("θ or its moments differ in row %d, subspace %d", r, j)
				}
			}
		}
	}
}

func TestPretrainingLowersTheLoss(t *testing.T) {
	cfg := tinyConfig(Pretrain)
	cfg.LR, cfg.Kimg = 4e-3, 3.2
	r := start(t, cfg, Sources{Device: devicetest.Open(t), Dataset: tinyData(t, 64)})
	rows := step(t, r, 400)
	var first, last float64
	for i := range 40 {
		first, last = first+rows[i].Loss, last+rows[len(rows)-1-i].Loss
	}
	if last > 0.6*first {
		t.Errorf("loss %v at first, %v at last", first/40, last/40)
	}
	end := rows[399]
	if end.Step != 400 || math.Abs(end.Kimg-3.2) > 1e-12 || !math.IsNaN(end.Energy) || !math.IsNaN(end.ScheduleLR) ||
		!(end.GradNorm > 0) || !(end.LR > 0) {
		t.Errorf("last row %+v", end)
	}
	m, err := r.Model(t.Context())
	if err != nil || m.Schedule != nil {
		t.Errorf("model with schedule %v, error %v", m.Schedule, err)
	}
}

// TestCallersBatches: they count as steps and leave the data set's order alone.
func TestCallersBatches(t *testing.T) {
	d := tinyData(t, 32)
	r := start(t, tinyConfig(Pretrain), Sources{Dataset: d})
	images, labels := make([]float32, 8*16), make([]int32, 8)
	if err := data.NewOrder(0, 32, false).Batch(d, 0, images, labels); err != nil {
		t.Fatal(err)
	}
	row, err := r.StepOn(t.Context(), images, labels)
	if err != nil || row.Step != 1 || row.Kimg != 0.008 || r.position != 0 {
		t.Errorf("row %+v, position %d, error %v", row, r.position, err)
	}
	if row = step(t, r, 1)[0]; row.Step != 2 || row.Kimg != 0.016 || r.position != 8 {
		t.Errorf("row %+v, position %d", row, r.position)
	}
	var bad *data.Error
	images[20] = 1.5
	if _, err := r.StepOn(t.Context(), images, labels); !errors.As(err, &bad) || bad.Row != 1 {
		t.Errorf("an image out of range: %v", err)
	}
	if _, err := r.StepOn(t.Context(), images[:17], nil); !errors.As(err, &bad) {
		t.Errorf("part of an image: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Step(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled step: %v", err)
	}
	if p := r.Progress(); p.Step != 2 {
		t.Errorf("refused steps were counted: %+v", p)
	}
}

// TestNonFiniteStepsAreSkipped: a learning rate beyond all measure makes the next gradients non-finite; they change
// nothing, are counted, and are told.
func TestNonFiniteStepsAreSkipped(t *testing.T) {
	cfg := tinyConfig(Isotropic)
	cfg.LR = 1e30
	r := start(t, cfg, Sources{Dataset: tinyData(t, 16)})
	step(t, r, 1)
	before := stateOf(t, r)
	var lost *DivergedError
	var err error
	for range guardSkips {
		if _, err = r.Step(t.Context()); err != nil {
			break
		}
	}
	if !errors.As(err, &lost) || lost.Step != guardSkips+1 {
		t.Errorf("nothing was told: %v", err)
	}
	after := stateOf(t, r)
	if after.Skipped != guardSkips || after.Step != guardSkips+1 || after.Updates != 1 ||
		after.ThetaUpdates[0] != before.ThetaUpdates[0] {
		t.Errorf("skipped %d of %d steps, %d updates", after.Skipped, after.Step, after.Updates)
	}
	if !slices.EqualFunc(before.Params, after.Params, slices.Equal) ||
		!slices.Equal(before.Schedule.Theta()[0][0], after.Schedule.Theta()[0][0]) {
		t.Error("a skipped step changed parameters")
	}
}

// TestAbsentClassesStay: the row of a class that no batch has shown keeps θ and moments.
func TestAbsentClassesStay(t *testing.T) {
	cfg := tinyConfig(Isotropic)
	cfg.Family.PerClass = true
	d := tinyData(t, 16)
	r := start(t, cfg, Sources{Dataset: d})
	images, labels := make([]float32, 8*16), make([]int32, 8)
	for i := range 8 {
		if err := d.Image(2*i, false, images[i*16:(i+1)*16]); err != nil { // class 0
			t.Fatal(err)
		}
	}
	before := r.Schedule().Theta()
	if _, err := r.StepOn(t.Context(), images, labels); err != nil {
		t.Fatal(err)
	}
	after := r.Schedule().Theta()
	if slices.Equal(before[0][0], after[0][0]) || !slices.Equal(before[1][0], after[1][0]) || r.adam.n[1] != 0 {
		t.Error("class 0 stayed, or class 1 moved")
	}
	labels[3] = -1
	var label *schedule.LabelError
	if _, err := r.StepOn(t.Context(), images, labels); !errors.As(err, &label) {
		t.Errorf("an image without a class: %v", err)
	}
}

// A run that pretrains on a basis per class keeps it in its state, beside the basis of the schedule that it only passes
// on.
func TestPretrainKeepsItsBasis(t *testing.T) {
	cfg := tinyConfig(Pretrain)
	cfg.Family = schedule.Family{Basis: "pca_per_class", K: 2}
	cfg.RatioEmbedding = new(true)
	d := tinyData(t, 16)
	b, _, err := passes.PCA(t.Context(), d, passes.PCASettings{K: 2, PerClass: true})
	if err != nil {
		t.Fatal(err)
	}
	state := stateOf(t, start(t, cfg, Sources{Dataset: d, Basis: b}))
	if state.Family == nil || state.Basis != nil {
		t.Fatalf("family's basis %v, schedule's %v", state.Family, state.Basis)
	}
	again := resume(t, state, Sources{Dataset: d})
	for label := range 2 {
		got, err := again.familyBasis.Vectors(label)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := b.Vectors(label); err != nil || !slices.Equal(got, want) {
			t.Errorf("class %d has other vectors (%v)", label, err)
		}
	}
}
