package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
)

// wantCode checks that err is an error of the contract with this code, in these words.
var wantCode = apitest.WantCode

// open returns an engine on a fresh folder with the model "tiny".
func open(t testing.TB) *Engine {
	t.Helper()
	return reopen(t, foldertest.New(t), Config{})
}

// reopen returns an engine on dir.
func reopen(t testing.TB, dir string, cfg Config) *Engine {
	t.Helper()
	cfg.Dir, cfg.Version = dir, "test"
	if cfg.Device == nil {
		cfg.Device = devicetest.Fast(t)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// openSmall returns an engine on a fresh folder with the model "tiny" and the data set "smooth" of 4×4 pixels.
func openSmall(t *testing.T, cfg Config) *Engine {
	t.Helper()
	dir := t.TempDir()
	small := strings.Replace(foldertest.Tiny, `"img_resolution":8`, `"img_resolution":4`, 1)
	foldertest.Model(t, filepath.Join(dir, "models", "tiny"), small, 1)
	e := reopen(t, dir, cfg)
	putSmoothOf(t, e, "smooth", 96, 4)
	return e
}

// rows is everything an operation sent, columns joined.
type rows struct {
	schema api.Schema
	n      int
	cols   map[string]any
	events []api.Event
}

// sameSamples reports whether float32 samples are the same within the rounding of a row by its place in a batch, which
// XLA has on some processors, and all other columns to the bit.
func sameSamples(got, want *rows) bool {
	const tolerance = 1e-5
	if got == nil || got.n != want.n || len(got.cols) != len(want.cols) {
		return false
	}
	for name, column := range want.cols {
		x, float := column.([]float32)
		if !float {
			if !reflect.DeepEqual(got.cols[name], column) {
				return false
			}
			continue
		}
		y := got.cols[name].([]float32)
		for i := range x {
			if math.Abs(float64(x[i]-y[i])) > tolerance*max(1, math.Abs(float64(x[i]))) {
				return false
			}
		}
	}
	return true
}

// collect runs a job to its end.
func collect(ctx context.Context, job *api.Job) (*rows, error) {
	out := &rows{schema: job.Schema, cols: map[string]any{}}
	return out, job.Run(ctx, out.add)
}

func (r *rows) add(e api.Event) error {
	r.events = append(r.events, e)
	if e.Batch == nil {
		return nil
	}
	r.n += e.Batch.Rows
	for i, c := range r.schema.Columns {
		sent := reflect.ValueOf(e.Batch.Cols[i])
		if joined, ok := r.cols[c.Name]; ok {
			sent = reflect.AppendSlice(reflect.ValueOf(joined), sent)
		}
		r.cols[c.Name] = sent.Interface()
	}
	return nil
}

// column returns a column of what was sent.
func column[E any](r *rows, name string) []E {
	v, _ := r.cols[name].([]E)
	return v
}

// prepare decodes a request and prepares it.
func prepare(ctx context.Context, e *Engine, op, body string) (*api.Job, error) {
	call, err := e.Operations().Call(api.ByGet, op, []byte(body))
	if err != nil {
		return nil, err
	}
	return e.Prepare(ctx, call)
}

// perform decodes a request and does its action.
func perform(ctx context.Context, e *Engine, name, body string, progress func(api.Meta)) (any, error) {
	call, err := e.Operations().Call(api.ByAction, name, []byte(body))
	if err != nil {
		return nil, err
	}
	return e.Action(ctx, call, progress)
}

// openExchange decodes a request and opens its exchange.
func openExchange(ctx context.Context, e *Engine, op, body string, in api.Schema) (*api.Exchange, error) {
	call, err := e.Operations().Call(api.ByExchange, op, []byte(body))
	if err != nil {
		return nil, err
	}
	return e.Exchange(ctx, call, in)
}

// converse opens an exchange that must succeed, until the end of the test, and a place for its rows.
func converse(t *testing.T, e *Engine, op, body string, in api.Schema) (*api.Exchange, *rows) {
	t.Helper()
	x, err := openExchange(t.Context(), e, op, body, in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x, &rows{schema: x.Out, cols: map[string]any{}}
}

// send has an exchange answer a batch, and takes the rows.
func (r *rows) send(t *testing.T, x *api.Exchange, n int, columns ...any) {
	t.Helper()
	if err := x.Do(t.Context(), api.Batch{Rows: n, Cols: columns}, r.add); err != nil {
		t.Fatal(err)
	}
}

// openUpload decodes a command and opens its upload.
func openUpload(ctx context.Context, e *Engine, command string, in api.Schema) (*api.Upload, error) {
	m, err := api.ReadMessage([]byte(command))
	if err != nil {
		return nil, err
	}
	name, err := m.Op()
	if err != nil {
		return nil, err
	}
	call, err := e.Operations().Call(api.ByPut, name, []byte(command))
	if err != nil {
		return nil, err
	}
	return e.Put(ctx, call, in)
}

// waitFor waits for a condition.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came to be")
		}
	}
}

// attempt does an operation that gives rows, to its end or its error.
func attempt(ctx context.Context, e *Engine, op, body string) (*rows, error) {
	job, err := prepare(ctx, e, op, body)
	if err != nil {
		return nil, err
	}
	r, err := collect(ctx, job)
	if err == nil && job.Rows >= 0 && int64(r.n) != job.Rows {
		err = fmt.Errorf("%d rows, %d were announced", r.n, job.Rows)
	}
	return r, err
}

// get does an operation that must succeed and gives rows.
func get(t *testing.T, e *Engine, op, body string) *rows {
	t.Helper()
	r, err := attempt(t.Context(), e, op, body)
	if err != nil {
		t.Fatalf("%s %s: %v", op, body, err)
	}
	for name, v := range r.cols {
		if v == nil {
			t.Fatalf("%s: column %s is empty", op, name)
		}
	}
	return r
}

// reply does an action that must succeed.
func reply[R any](t *testing.T, e *Engine, name, body string) R {
	t.Helper()
	out, err := perform(t.Context(), e, name, body, nil)
	if err != nil {
		t.Fatalf("%s %s: %v", name, body, err)
	}
	return out.(R)
}

// act does an action that must succeed and gives its reply as JSON values.
func act(t *testing.T, e *Engine, name, body string) (out map[string]any) {
	t.Helper()
	text, err := json.Marshal(reply[any](t, e, name, body))
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatalf("%s: %s is not an object: %v", name, text, err)
	}
	return out
}

// upload uploads batches, which must be taken.
func upload(t *testing.T, e *Engine, command string, in api.Schema, batches ...api.Batch) {
	t.Helper()
	if _, err := put(e, command, in, batches...); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

// refuse does an operation that must be refused before any work, with a code and in these words.
func refuse(t *testing.T, e *Engine, op, body string, code api.Code, says ...string) {
	t.Helper()
	var err error
	if o := api.Operations().Named(op); o != nil && o.By(api.ByGet) {
		_, err = prepare(t.Context(), e, op, body)
	} else {
		_, err = perform(t.Context(), e, op, body, nil)
	}
	wantCode(t, op+" "+body, err, code, says...)
}

// labelled is the schema of images with labels.
func labelled(image api.Column) api.Schema {
	return api.Schema{Columns: []api.Column{image, {Name: "label", Type: api.Int32}}}
}

// putImages stores n random images of 8×8 with labels 0, 1, 2, 0, …
func putImages(t *testing.T, e *Engine, name string, n int) {
	t.Helper()
	foldertest.Dataset(t, filepath.Join(e.catalog.Folders().Datasets, name), n, true)
}
