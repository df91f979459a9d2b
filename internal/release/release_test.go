package release

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/protobuf/proto"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
)

var write = flag.String("write", "", "keep what this version writes, as testdata/VERSION")

// TestEveryReleaseIsRead: a server on the data folder of a release answers the messages of its session with the same
// values.
func TestEveryReleaseIsRead(t *testing.T) {
	if *write != "" {
		keep(t, filepath.Join("testdata", *write))
	}
	kept, err := filepath.Glob("testdata/*/session.json.gz")
	if err != nil || len(kept) == 0 {
		t.Fatalf("no session of a release, %v", err)
	}
	for _, file := range kept {
		t.Run(path.Base(path.Dir(filepath.ToSlash(file))), func(t *testing.T) { replay(t, filepath.Dir(file)) })
	}
}

func replay(t *testing.T, release string) {
	var session []exchange
	text, err := os.ReadFile(filepath.Join(release, "session.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(unzip(t, text), &session); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unpack(t, filepath.Join(release, "data.tar.gz"), dir)
	conn := dial(t, serve(t, dir))
	for _, then := range session {
		now, err := send(t.Context(), conn, then)
		if err != nil {
			t.Fatalf("%s: %v", asked(t, then), err)
		}
		if now.Error != then.Error {
			t.Errorf("%s: error %q, then %q", asked(t, then), now.Error, then.Error)
			continue
		}
		if got, want := values(t, now), values(t, then); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%.2000s, then\n%.2000s", asked(t, then), got, want)
		}
	}
}

// asked returns the request of a call.
func asked(t *testing.T, call exchange) string {
	t.Helper()
	switch path.Base(call.Method) {
	case "DoAction":
		action := decode(t, call.Requests[0], &flight.Action{})
		return fmt.Sprintf("%s %s", action.Type, action.Body)
	case "DoGet":
		return string(decode(t, call.Requests[0], &flight.Ticket{}).Ticket)
	}
	return string(decode(t, call.Requests[0], &flight.FlightData{}).FlightDescriptor.Cmd)
}

func decode[M proto.Message](t *testing.T, text []byte, m M) M {
	t.Helper()
	if err := proto.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// values returns what a call has answered, in JSON, without what no two servers share.
func values(t *testing.T, call exchange) []byte {
	t.Helper()
	var found any
	switch path.Base(call.Method) {
	case "DoAction":
		if len(call.Replies) > 0 {
			body := decode(t, call.Replies[len(call.Replies)-1], &flight.Result{}).Body
			if err := json.Unmarshal(body, &found); err != nil {
				t.Fatalf("%s: %v", asked(t, call), err)
			}
		}
	case "DoPut":
		for _, reply := range call.Replies {
			if err := json.Unmarshal(decode(t, reply, &flight.PutResult{}).AppMetadata, &found); err != nil {
				t.Fatal(err)
			}
		}
	default:
		found = rows(t, call)
	}
	text, err := json.Marshal(without(found))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// replies reads the messages of a call as if they came from a server.
type replies struct {
	t    *testing.T
	left [][]byte
}

func (r *replies) Recv() (*flight.FlightData, error) {
	if len(r.left) == 0 {
		return nil, io.EOF
	}
	next := r.left[0]
	r.left = r.left[1:]
	return decode(r.t, next, &flight.FlightData{}), nil
}

// rows returns the schema and all rows of a call's reply, in however many messages they came.
func rows(t *testing.T, call exchange) any {
	t.Helper()
	if call.Error != "" {
		return nil
	}
	reader, err := flight.NewRecordReader(&replies{t, call.Replies})
	if err != nil {
		t.Fatalf("%s: %v", asked(t, call), err)
	}
	defer reader.Release()
	var fields, all []any
	for _, field := range reader.Schema().Fields() {
		fields = append(fields, fmt.Sprint(field))
	}
	for reader.Next() {
		text, err := reader.RecordBatch().MarshalJSON()
		var more []any
		if err == nil {
			err = json.Unmarshal(text, &more)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, more...)
	}
	if reader.Err() != nil {
		t.Fatalf("%s: %v", asked(t, call), reader.Err())
	}
	return map[string]any{"fields": fields, "rows": all}
}

// ofTheMoment are the fields whose values no two servers share.
var ofTheMoment = []string{"seconds", "created", "gflops", "mfu", "program", "steps_per_second", "updated"}

// without returns a JSON value without the fields of the moment.
func without(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = without(value[i])
		}
	case map[string]any:
		for name := range value {
			if slices.Contains(ofTheMoment, name) {
				delete(value, name)
				continue
			}
			value[name] = without(value[name])
		}
	}
	return value
}

// keep makes a data folder with one thing of every kind, and records a session on it.
func keep(t *testing.T, release string) {
	dir := t.TempDir()
	t.Run("folder", func(t *testing.T) {
		c := connect(t, serve(t, dir))
		for _, do := range folder {
			do.perform(t, c)
		}
	})
	if err := os.MkdirAll(release, 0o755); err != nil {
		t.Fatal(err)
	}
	pack(t, dir, filepath.Join(release, "data.tar.gz"))
	var r recorder
	t.Run("session", func(t *testing.T) {
		c := connect(t, r.start(t, dial(t, serve(t, dir))))
		for _, do := range session {
			do.perform(t, c)
		}
	})
	text, err := json.Marshal(r.kept[1:]) // the first asks whether a server is there
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(release, "session.json.gz"), zip(t, text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), "grpc://"+address, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func zip(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unzip(t *testing.T, text []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func pack(t *testing.T, dir, file string) {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, zip(t, out.Bytes()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, file, dir string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(bytes.NewReader(unzip(t, text)))
	for {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(head.Name))
		if head.FileInfo().IsDir() {
			err = os.MkdirAll(name, 0o755)
		} else {
			var body []byte
			if body, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(name, body, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// request is what a client asks for: an action, an operation that gives rows, or one that takes them.
type request struct {
	op     string
	fields string // in JSON
	rows   bool
	in     *client.Input

	refused bool
}

func (r request) perform(t *testing.T, c *client.Client) {
	t.Helper()
	ctx, fields := t.Context(), json.RawMessage(cmp.Or(r.fields, "{}"))
	var err error
	switch {
	case r.in != nil && r.rows:
		_, _, _, err = client.ReadAll(c.Denoise(ctx, api.Denoise{Model: "unet"}, *r.in))
	case r.in != nil:
		_, err = c.Put(ctx, r.op, fields, *r.in)
	case r.rows:
		_, _, _, err = client.ReadAll(c.Get(ctx, r.op, fields))
	default:
		_, err = c.Action(ctx, r.op, fields, nil)
	}
	if (err != nil) != r.refused {
		t.Errorf("%s %s: %v", r.op, r.fields, err)
	}
}

func input(rows int, columns []api.Column, values ...any) *client.Input {
	return &client.Input{Schema: api.Schema{Columns: columns}, Batches: func(yield func(api.Batch) bool) {
		yield(api.Batch{Rows: rows, Cols: values})
	}}
}
