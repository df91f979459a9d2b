package flight

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"

	"github.com/anisoflight/anisoflight/flight/api"
)

// readBody reads a body as a stream of one batch.
func readBody(t *testing.T, body []byte) (schema string, indices []int64) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatalf("no batch: %v", r.Err())
	}
	indices = slices.Clone(r.RecordBatch().Column(0).(*array.Int64).Int64Values())
	if r.Next() || r.Err() != nil {
		t.Fatalf("more than one batch, or %v", r.Err())
	}
	return r.Schema().String(), indices
}

// TestRowsOfActions: every result is a complete stream of at most 3.5 MiB, and all have one schema.
func TestRowsOfActions(t *testing.T) {
	s := serve(t, Config{})
	for body, bodies := range map[string]int{
		`{"rows":10,"batch":4}`:                1 + 2,
		`{"rows":200,"batch":200,"size":64}`:   3, // 9.8 MB
		`{"rows":3,"quiet":true}`:              1, // the schema, at least
		`{"rows":20,"batch":20,"op":"Sample"}`: 1,
	} {
		results, err := s.act(t.Context(), "Sample", body)
		if err != nil || len(results) != bodies {
			t.Fatalf("%s: %d results, %v; want %d", body, len(results), err, bodies)
		}
		var all []int64
		var first string
		for _, r := range results {
			if len(r) > maxResultBytes {
				t.Errorf("%s: a result of %d bytes", body, len(r))
			}
			schema, indices := readBody(t, r)
			if all = append(all, indices...); first == "" {
				first = schema
			}
			if schema != first {
				t.Errorf("%s: schemas differ: %s, %s", body, first, schema)
			}
		}
		var req fakeRequest
		if err := json.Unmarshal([]byte(body), &req); err != nil {
			t.Fatal(err)
		}
		if want := upTo(req.Rows); !req.Quiet && !slices.Equal(all, want) {
			t.Errorf("%s: rows %v", body, all)
		}
	}
	_, err := s.act(t.Context(), "Sample", `{"rows":1,"size":600}`)
	wantStatus(t, "a row of 4.3 MB", err, codes.ResourceExhausted, "[TOO_LARGE] ")
}

func TestJSONActions(t *testing.T) {
	s := serve(t, Config{})
	for body, least := range map[string]int{``: 1, `{"rows":3}`: 1, `{"rows":200,"tick_ms":10}`: 2} {
		results, err := s.act(t.Context(), "MakeSchedule", body)
		if err != nil || len(results) < least || least == 1 && len(results) != 1 {
			t.Fatalf("%q: %d results, %v", body, len(results), err)
		}
		for i, r := range results {
			var object map[string]any
			if err := json.Unmarshal(r, &object); err != nil {
				t.Fatalf("%q: %s: %v", body, r, err)
			}
			if last := i == len(results)-1; last != (object["name"] == "MakeSchedule") ||
				last == (object["event"] == "progress") {
				t.Errorf("%q: result %d of %d is %s", body, i, len(results), r)
			}
		}
	}
}

func TestActionErrors(t *testing.T) {
	s := serve(t, Config{})
	for _, c := range []struct {
		name, body string
		code       codes.Code
		begin      string
	}{
		{"Nothing", ``, codes.NotFound, "[OP_NOT_FOUND] "},
		{"", ``, codes.NotFound, "[OP_NOT_FOUND] "},
		{"CloseSession", "\x0a\x00", codes.Unimplemented, "[UNIMPLEMENTED] "},
		{"Sample", `{"op":"Denoise","rows":1}`, codes.InvalidArgument, "[BAD_REQUEST] op "},
		{"WatchRun", `{}`, codes.NotFound, "[OP_NOT_FOUND] "}, // which is no action
		{"ListModels", `[`, codes.InvalidArgument, "[BAD_REQUEST] "},
		{"ListModels", `{"fail":"panic"}`, codes.Internal, "[INTERNAL] "},
		{"ListModels", `{"fail":"busy"}`, codes.ResourceExhausted, "[BUSY] "},
		{"Sample", `{"rows":"x"}`, codes.InvalidArgument, "[BAD_REQUEST] "},
		{"Sample", `{"rows":1,"fail":"internal"}`, codes.Internal, "[INTERNAL] "},
	} {
		_, err := s.act(t.Context(), c.name, c.body)
		wantStatus(t, c.name+c.body, err, c.code, c.begin)
	}
}

func TestActionsAreListed(t *testing.T) {
	s := serve(t, Config{})
	actions, err := rest(s.client.ListActions(t.Context(), &flight.Empty{}))
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]string{}
	for _, a := range actions {
		described[a.GetType()] = a.GetDescription()
	}
	for _, op := range api.Operations() {
		if sentence, listed := described[op.Name]; listed != op.By(api.ByAction) || sentence != op.Sentence && listed {
			t.Errorf("%s is described by %q", op.Name, sentence)
		}
	}
}
