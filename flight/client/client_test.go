package client_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
	"github.com/anisoflight/anisoflight/internal/testing/certtest"
)

func dial(t *testing.T, cfg flight.Config, o client.Options) *client.Client {
	t.Helper()
	location, stop, err := serve(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	c, err := client.Dial(t.Context(), location, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var wantCode = apitest.WantCode

// images is n images 2×2 in shades of their number.
func images(n int) client.Input {
	s := api.Schema{Columns: []api.Column{
		{Name: "image", Type: api.Uint8, Kind: api.Tensor, Shape: []int{2, 2, 1}, DimNames: []string{"H", "W", "C"}},
		{Name: "label", Type: api.Int32},
	}}
	return client.Input{Schema: s, Batches: func(yield func(api.Batch) bool) {
		for i := range n {
			shade := uint8(i)
			if !yield(api.Batch{Rows: 1, Cols: []any{[]uint8{shade, shade, shade, shade}, []int32{int32(i % 2)}}}) {
				return
			}
		}
	}}
}

// TestTheRoundOfADataset: upload, list, read and delete.
func TestTheRoundOfADataset(t *testing.T) {
	c, ctx := dial(t, flight.Config{}, client.Options{}), t.Context()
	if rows, err := c.PutDataset(ctx, api.PutDataset{Name: "shades"}, images(5)); rows != 5 || err != nil {
		t.Fatalf("%d rows, %v", rows, err)
	}
	_, err := c.PutDataset(ctx, api.PutDataset{Name: "shades"}, images(5))
	wantCode(t, "the name again", err, api.NameTaken)
	list, err := c.ListDatasets(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "shades" || list[0].Rows != 5 {
		t.Errorf("%+v, %v", list, err)
	}
	schema, all, end, err := client.ReadAll(c.Dataset(ctx, api.Dataset{Dataset: "shades", Offset: 3}))
	if err != nil || end["event"] != "end" {
		t.Fatalf("%v, %v", end, err)
	}
	if got := api.ColumnOf[uint8](schema, all, "image"); !slices.Equal(got, []uint8{3, 3, 3, 3, 4, 4, 4, 4}) {
		t.Errorf("images %v", got)
	}
	if err := c.DeleteDataset(ctx, "shades"); err != nil {
		t.Error(err)
	}
	_, _, _, err = client.ReadAll(c.Dataset(ctx, api.Dataset{Dataset: "shades"}))
	wantCode(t, "after its end", err, api.DatasetNotFound)
}

// TestCreateRun: the fields of a request's embedded JSON are sent next to its own.
func TestCreateRun(t *testing.T) {
	c, ctx := dial(t, flight.Config{}, client.Options{}), t.Context()
	if _, err := c.PutDataset(ctx, api.PutDataset{Name: "shades"}, images(8)); err != nil {
		t.Fatal(err)
	}
	network := `{"model_type":"SongUNet","img_resolution":2,"img_channels":1,"label_dim":2,"model_channels":8,` +
		`"channel_mult":[1],"num_blocks":1,"attn_resolutions":[]}`
	run, err := c.CreateRun(ctx, api.CreateRun{
		Name:   "r",
		Config: []byte(`{"stage":"pretrain","dataset":"shades","batch":2,"network":` + network + `}`),
	})
	if err != nil || run.Name != "r" || run.State != "created" {
		t.Fatalf("%+v, %v", run, err)
	}
	if err := c.DeleteRun(ctx, "r"); err != nil {
		t.Error(err)
	}
	if runs, err := c.ListRuns(ctx); err != nil || len(runs) != 0 {
		t.Errorf("%v, %v", runs, err)
	}
}

// TestLeavingALoopCancels: the work ends on both sides, and no goroutine is left.
func TestLeavingALoopCancels(t *testing.T) {
	c, ctx := dial(t, flight.Config{}, client.Options{}), t.Context()
	before := runtime.NumGoroutine()
	many := 4096
	for m, err := range c.Sample(ctx, api.Sample{Model: "two", N: &many, Steps: 50_000}) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Meta["event"] == "progress" {
			break
		}
	}
	endless := images(0)
	endless.Batches = func(yield func(api.Batch) bool) {
		for yield(api.Batch{Rows: 1, Cols: []any{[]float32{0}, []int32{0}, []float64{1}}}) {
		}
	}
	endless.Schema = api.Schema{Columns: []api.Column{
		{Name: "x", Type: api.Float32, Kind: api.Tensor, Shape: []int{1, 1, 1}}, {
			Name: "label",
			Type: api.Int32,
		}, {Name: "sigma", Type: api.Float64},
	}}
	for m, err := range c.Denoise(ctx, api.Denoise{Model: "two"}, endless) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Batch.Rows > 0 {
			break
		}
	}
	idle := func() bool {
		info, err := c.ServerInfo(ctx)
		return err == nil && info.ActiveRequests == 0 && runtime.NumGoroutine() <= before+2
	}
	for end := time.Now().Add(10 * time.Second); !idle(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// TestContextsEnd: a call whose context ends has the context's error.
func TestContextsEnd(t *testing.T) {
	c := dial(t, flight.Config{}, client.Options{})
	many := 4096
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, _, _, err := client.ReadAll(c.Sample(ctx, api.Sample{Model: "two", N: &many, Steps: 50_000}))
	if code := api.ErrorOf(err).Code; code != api.DeadlineExceeded || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := c.ListModels(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}

func TestTokenOverTLS(t *testing.T) {
	pair, roots := certtest.Pair(t)
	token, line, err := auth.NewToken("reader", []api.Scope{api.ReadScope})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.ParseTokens([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	cfg := flight.Config{
		TLS:    &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Tokens: func() *auth.Tokens { return tokens },
	}
	c := dial(t, cfg, client.Options{Token: token, TLS: &tls.Config{RootCAs: roots}})
	if models, err := c.ListModels(t.Context()); err != nil || len(models) != 1 || models[0].Name != "two" {
		t.Errorf("%+v, %v", models, err)
	}
	wantCode(t, "without the scope", c.DeleteModel(t.Context(), "two"), api.ScopeMissing)

	location, stop, err := serve(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	spaced, err := client.Dial(t.Context(), location, client.Options{
		Token: " " + token + "\r\n", TLS: &tls.Config{RootCAs: roots},
	})
	if err != nil {
		t.Fatalf("a token with white space around it: %v", err)
	}
	_ = spaced.Close()
	for _, wrong := range []string{"a b", "a\x00b", "a\nb", "tökén"} {
		_, err := client.Dial(t.Context(), location, client.Options{Token: wrong, TLS: &tls.Config{RootCAs: roots}})
		if err == nil || !strings.Contains(err.Error(), "token must be visible ASCII") ||
			strings.Contains(err.Error(), wrong) {
			t.Errorf("the token %q: %v", wrong, err)
		}
	}
	_, err = client.Dial(t.Context(), location, client.Options{Token: "wrong", TLS: &tls.Config{RootCAs: roots}})
	wantCode(t, "a wrong token", err, api.NoToken)
	if _, err = client.Dial(t.Context(), location, client.Options{}); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that is not trusted: %v", err)
	}
}

// TestOperationsByName: a map or JSON is sent unchanged, including zeros, and is not modified.
func TestOperationsByName(t *testing.T) {
	c, ctx := dial(t, flight.Config{}, client.Options{}), t.Context()
	_, typed, _, err := client.ReadAll(c.EvaluateSchedule(ctx, api.EvaluateSchedule{
		Schedule: api.ScheduleRef{Name: "edm"},
		Points:   5,
	}))
	if err != nil {
		t.Fatal(err)
	}
	request := map[string]any{"schedule": "edm", "points": 5}
	for _, req := range []any{request, json.RawMessage(`{"schedule":"edm","points":5}`)} {
		_, rows, _, err := client.ReadAll(c.Get(ctx, "EvaluateSchedule", req))
		if err != nil || !reflect.DeepEqual(rows, typed) {
			t.Errorf("%v: %v, %v; want %v", req, rows, err, typed)
		}
	}
	if len(request) != 2 {
		t.Errorf("the request has become %v", request)
	}
	_, _, _, err = client.ReadAll(c.Get(ctx, "Sample", map[string]any{"model": "two", "labels": []int{0}, "steps": 0}))
	wantCode(t, "no steps", err, api.BadRequest)
	reply, err := c.Action(ctx, "DescribeModel", map[string]any{"model": "two"}, nil)
	if err != nil || !strings.Contains(string(reply), `"two"`) {
		t.Errorf("%s, %v", reply, err)
	}
	input := images(3)
	if n, err := c.Put(ctx, "PutDataset", map[string]any{"name": "shades"}, input); n != 3 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestSocketsOfAnyName: a socket's path may have any characters.
func TestSocketsOfAnyName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"s", "two words", "ü", "per%20cent", "hash#tag", "what?x", `a"b`, "a=b,c:d;e&f"} {
		location, stop, err := serveAt("unix:"+name, flight.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.Dial(t.Context(), location, client.Options{})
		if err != nil {
			t.Errorf("%s at %s: %v", name, location, err)
		} else if err := c.Close(); err != nil {
			t.Error(err)
		}
		stop()
	}
}

func TestBadLocations(t *testing.T) {
	for _, location := range []string{"", "127.0.0.1:1", "http://127.0.0.1:1", "grpc+tls:127.0.0.1:1"} {
		if _, err := client.Dial(t.Context(), location, client.Options{}); err == nil ||
			!strings.Contains(err.Error(), "the location must begin with") {
			t.Errorf("%q: %v", location, err)
		}
	}
	if _, err := client.Dial(t.Context(), "grpc://127.0.0.1:1", client.Options{}); err == nil {
		t.Error("nobody is there")
	}
}
