package release

import (
	"archive/zip"
	"bytes"
	stdcmp "cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
)

var write = flag.String("write", "", "keep what this version writes, as testdata/VERSION.zip")

// removed are the operations of releases that are gone. Their errors say what to do instead.
var removed = []string{"BenchSchedule", "ExportStatistics", "ExportFitted"}

// TestEveryReleaseIsRead: a server on the data folder of a release answers the messages of its session with the same
// values, except those of operations that are gone.
func TestEveryReleaseIsRead(t *testing.T) {
	if *write != "" {
		keep(t, filepath.Join("testdata", *write+".zip"))
	}
	kept, err := filepath.Glob("testdata/*.zip")
	if err != nil || len(kept) == 0 {
		t.Fatalf("no release is kept, %v", err)
	}
	for _, file := range kept {
		t.Run(filepath.Base(file), func(t *testing.T) { replay(t, file) })
	}
}

func replay(t *testing.T, file string) {
	release, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer release.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, release); err != nil {
		t.Fatal(err)
	}
	var session []exchange
	text, err := os.ReadFile(filepath.Join(dir, "session.json"))
	if err == nil {
		err = json.Unmarshal(text, &session)
	}
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, serve(t, filepath.Join(dir, "data")))
	for _, then := range session {
		now, err := send(t.Context(), conn, then)
		if err != nil {
			t.Fatalf("%s: %v", asked(t, then), err)
		}
		if i := slices.IndexFunc(removed, func(op string) bool { return strings.Contains(asked(t, then), op) }); i >= 0 {
			if want := "[OP_NOT_FOUND] " + removed[i] + " is gone since 0.1. "; !strings.HasPrefix(now.Error, want) {
				t.Errorf("%s: error %q, want %q", asked(t, then), now.Error, want)
			}
			continue
		}
		if now.Error != then.Error && isSampler(t, conn, then) {
			continue
		}
		if now.Error != then.Error {
			t.Errorf("%s: error %q, then %q", asked(t, then), now.Error, then.Error)
			continue
		}
		if strings.HasPrefix(asked(t, then), "ListSchedules") {
			then = withoutSamplers(t, then)
		}
		if got, want := values(t, now), values(t, then); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%.2000s, then\n%.2000s", asked(t, then), got, want)
		}
	}
}

// isSampler reports whether a call is about a schedule that 0.1 stored for a sampler of its own, which is a plan of the
// same name now. Samples by that plan must be those that 0.1 drew.
func isSampler(t *testing.T, conn *grpc.ClientConn, then exchange) bool {
	t.Helper()
	words := strings.TrimPrefix(asked(t, then), "ExportSchedule ")
	var request map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(words, "PlanSampler ")), &request); err != nil {
		return false
	}
	name, _ := request["schedule"].(string)
	if !slices.Contains([]string{"few", "fit", "gaussian"}, name) {
		return false
	}
	if request["op"] != "Sample" {
		return true
	}
	for _, field := range []string{"schedule", "solver", "nfe"} {
		delete(request, field)
	}
	request["plan"] = name
	ticket, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	call := then
	text, err := proto.Marshal(&flight.Ticket{Ticket: ticket})
	if err != nil {
		t.Fatal(err)
	}
	call.Requests = [][]byte{text}
	now, err := send(t.Context(), conn, call)
	if err != nil || now.Error != "" {
		t.Fatalf("%s: %v, %s", ticket, err, now.Error)
	}
	if diff := cmp.Diff(rows(t, then), rows(t, now), cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("%s: %s", ticket, diff)
	}
	return true
}

// withoutSamplers returns a list of schedules of 0.1 without those that are plans now, and without what the others held
// for samplers.
func withoutSamplers(t *testing.T, then exchange) exchange {
	t.Helper()
	reply := decode(t, then.Replies[len(then.Replies)-1], &flight.Result{})
	var list struct {
		Schedules []map[string]any `json:"schedules"`
	}
	err := json.Unmarshal(reply.Body, &list)
	list.Schedules = slices.DeleteFunc(list.Schedules, func(s map[string]any) bool { return s["sampler"] != nil })
	for _, s := range list.Schedules {
		delete(s, "statistics")
	}
	if err == nil {
		reply.Body, err = json.Marshal(list)
	}
	var text []byte
	if err == nil {
		text, err = proto.Marshal(reply)
	}
	if err != nil {
		t.Fatal(err)
	}
	then.Replies = [][]byte{text}
	return then
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

// keep makes a data folder with one thing of every kind, records a session on it, and writes both into an archive.
func keep(t *testing.T, file string) {
	var all bytes.Buffer
	archive := zip.NewWriter(&all)
	root := t.TempDir()
	dir := filepath.Join(root, "data")
	t.Run("folder", func(t *testing.T) {
		c := connect(t, serve(t, dir))
		for _, do := range folder {
			do.perform(t, c)
		}
	})
	if err := archive.AddFS(os.DirFS(root)); err != nil { // the session changes the folder
		t.Fatal(err)
	}
	var r recorder
	t.Run("session", func(t *testing.T) {
		c := connect(t, r.start(t, dial(t, serve(t, dir))))
		for _, do := range session {
			do.perform(t, c)
		}
	})
	text, err := archive.Create("session.json")
	if err == nil {
		err = json.NewEncoder(text).Encode(r.kept[1:]) // the first asks whether a server is there
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, all.Bytes(), 0o644); err != nil {
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
	ctx, fields := t.Context(), json.RawMessage(stdcmp.Or(r.fields, "{}"))
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
