package api

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestDecodeSetsDefaults(t *testing.T) {
	var r Sample
	if err := decode([]byte(`{"op":"Sample","model":"digits","n":5,"steps":9}`), &r); err != nil {
		t.Fatal(err)
	}
	if r.Model != "digits" || *r.N != 5 || r.Steps != 9 || r.NFE != 0 || r.Seed != 0 || r.Order != 0 {
		t.Errorf("fields: %+v", r)
	}
	if r.Solver != "" || r.SecondPoint != "midpoint" || r.Variant != "bh2" || r.Grid.Kind != GridSchedule ||
		r.DType != "" || r.Layout != "HWC" || r.BatchBytes != 2<<20 || !*r.LowerOrderFinal || r.Schedule.Given() {
		t.Errorf("defaults: %+v", r)
	}
}

// Every line is a request that must fail with this code and name this field.
func TestDecodeRejects(t *testing.T) {
	const ok = `"model":"m","n":1,"steps":2`
	tests := []struct {
		name, body string
		code       Code
		names      string
	}{
		{"empty body", ``, BadRequest, "model"},
		{"not JSON", `{`, BadRequest, "too early"},
		{"not an object", `[1]`, BadRequest, "object"},
		{"two values", `{` + ok + `}{}`, BadRequest, "more than one"},
		{"rubbish after", `{` + ok + `} x`, BadRequest, "more than one"},
		{"unknown field", `{` + ok + `,"nope":1}`, BadRequest, "nope"},
		{"case matters", `{` + ok + `,"Seed":1}`, BadRequest, "Seed"},
		{"twice", `{` + ok + `,"n":1}`, BadRequest, `n `},
		{"null in a list", `{"model":"m","labels":[null],"steps":2}`, BadRequest, "labels[0]"},
		{"null of an unknown field", `{` + ok + `,"nope":null}`, BadRequest, "nope"},
		{"null twice", `{` + ok + `,"seed":null,"seed":1}`, BadRequest, "seed is given twice"},
		{"text for a number", `{"model":"m","n":"1","steps":2}`, BadRequest, `n `},
		{"number for text", `{"model":1,"n":1,"steps":2}`, BadRequest, "model"},
		{"fraction", `{"model":"m","n":1.5,"steps":2}`, BadRequest, `n `},
		{"double above 2⁵³", `{` + ok + `,"seed":1e19}`, BadRequest, "in digits alone"},
		{"double out of range", `{"model":"m","n":1e400,"steps":2}`, BadRequest, `n `},
		{"huge size", `{"model":"m","n":123456789012345678901234567890,"steps":2}`, TooLarge, `n `},
		{"hugely negative", `{"model":"m","n":-123456789012345678901234567890,"steps":2}`, BadRequest, `n `},
		{"seed too large", `{` + ok + `,"seed":18446744073709551616}`, BadRequest, "seed"},
		{"negative seed", `{` + ok + `,"seed":-1}`, BadRequest, "seed"},
		{"seed of other text", `{` + ok + `,"seed":"0x1F"}`, BadRequest, "seed"},
		{"seed too large as text", `{` + ok + `,"seed":"18446744073709551616"}`, BadRequest, "seed"},
		{"label too large", `{"model":"m","labels":[1,4294967296],"steps":2}`, BadRequest, "labels[1]"},
		{"label in a list", `{"model":"m","labels":[[1]],"steps":2}`, BadRequest, "labels[0]"},
		{"bool as number", `{` + ok + `,"afs":1}`, BadRequest, "afs"},
		{"no steps", `{"model":"m","n":1}`, BadRequest, "steps"},
		{"steps and nfe", `{` + ok + `,"nfe":3}`, BadRequest, "nfe"},
		{"zero steps", `{"model":"m","n":1,"steps":0}`, BadRequest, "steps"},
		{"too many steps", `{"model":"m","n":1,"steps":1000000000}`, TooLarge, "steps"},
		{"solver", `{` + ok + `,"solver":"magic"}`, BadRequest, "magic"},
		{"solver's case", `{` + ok + `,"solver":"Heun"}`, BadRequest, "Heun"},
		{"every", `{` + ok + `,"every":-1}`, BadRequest, "every"},
		{"layout", `{` + ok + `,"layout":"WHC"}`, BadRequest, "layout"},
		{"dtype", `{` + ok + `,"dtype":"float64"}`, BadRequest, "dtype"},
		{"batch_bytes", `{` + ok + `,"batch_bytes":0}`, BadRequest, "batch_bytes"},
		{"grid name", `{` + ok + `,"grid":"x"}`, BadRequest, "grid"},
		{"grid form", `{` + ok + `,"grid":{"edm":{},"t":[1,0]}}`, BadRequest, "grid"},
		{"grid member", `{` + ok + `,"grid":{"edm":{"rh":1}}}`, BadRequest, "grid.edm.rh"},
		{"grid range of polynomial", `{` + ok + `,"grid":{"polynomial":{"rho":0}}}`, BadRequest, "grid.polynomial"},
		{"grid range", `{` + ok + `,"grid":{"edm":{"sigma_min":90}}}`, BadRequest, "grid.edm"},
		{"grid with steps", `{` + ok + `,"grid":{"t":[1,0]}}`, BadRequest, "grid"},
		{"grid rises", `{"model":"m","n":1,"grid":{"t":[0,1]}}`, BadRequest, "grid.t"},
		{"grid too short", `{"model":"m","n":1,"grid":{"sigma":[1]}}`, BadRequest, "grid.sigma"},
		{"grid of lists", `{"model":"m","n":1,"grid":{"sigma":[[2,1],[3,2,1]]}}`, BadRequest, "grid.sigma"},
		{"schedule form", `{` + ok + `,"schedule":{"x":1}}`, BadRequest, "schedule.x"},
		{"schedule T", `{` + ok + `,"schedule":{"edm":{"T":0}}}`, BadRequest, "schedule.edm.T"},
		{"deep", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), BadRequest, "deep"},
		{"no JSON", "SELECT * FROM digits", BadRequest, "not Flight SQL"},
		{"Flight SQL's", "\n@type.googleapis.com/arrow.flight.protocol.sql.CommandGetTables", BadRequest, "not Flight SQL"},
		{"not UTF-8", "{\"model\":\"\xff\"}", BadRequest, "UTF-8"},
		{"overflowing float", `{` + ok + `,"schedule":{"edm":{"T":1e999}}}`, BadRequest, "T"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := decode([]byte(test.body), new(Sample))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Code != test.code {
				t.Errorf("code %s, want %s (%v)", e.Code, test.code, e)
			}
			if !strings.Contains(e.Error(), test.names) {
				t.Errorf("%q does not name %q", e.Error(), test.names)
			}
		})
	}
}

// What languages without integers or optional fields write is the same request.
func TestNumbersOfOtherLanguages(t *testing.T) {
	want := new(Sample)
	if err := decode([]byte(`{"model":"m","labels":[1,-1],"steps":8,"seed":18446744073709551615}`), want); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		`{"model":"m","labels":[1.0,-1.0],"steps":8.0,"seed":"18446744073709551615"}`,
		`{"model":"m","labels":[1,-1e0],"steps":80e-1,"seed":18446744073709551615,"n":null,"grid":null,"guide":null}`,
	} {
		got := new(Sample)
		if err := decode([]byte(body), got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	run := new(CreateRun)
	err := decode([]byte(`{"name":"r","batch":8.0,"network":{"model_channels":16.0,"dropout":0.5}}`), run)
	if err != nil || string(run.Config) != `{"batch":8,"network":{"model_channels":16,"dropout":0.5}}` {
		t.Errorf("%s, %v", run.Config, err)
	}
}

func TestGridForms(t *testing.T) {
	tests := map[string]Grid{
		`"logsnr"`:                         {Kind: GridLogSNR},
		`"edm"`:                            {Kind: GridEDM, SigmaMin: 0.002, SigmaMax: 80, Rho: 7},
		`{"edm":{}}`:                       {Kind: GridEDM, SigmaMin: 0.002, SigmaMax: 80, Rho: 7},
		`"polynomial"`:                     {Kind: GridPolynomial, SigmaMin: 0.002, SigmaMax: 80, Rho: 7},
		`{"polynomial":{"sigma_max":20}}`:  {Kind: GridPolynomial, SigmaMin: 0.002, SigmaMax: 20, Rho: 7},
		`{"edm":{"sigma_max":20,"rho":5}}`: {Kind: GridEDM, SigmaMin: 0.002, SigmaMax: 20, Rho: 5},
		`{"t":[3,2,0]}`:                    {Kind: GridTimes, T: []float64{3, 2, 0}},
		`{"sigma":[3,1]}`:                  {Kind: GridSigmas, Sigma: []float64{3, 1}},
	}
	checkForms(t, tests)
}

func TestScheduleForms(t *testing.T) {
	checkForms(t, map[string]ScheduleRef{
		`"mine"`: {"mine", 6400}, `"edm"`: {"edm", 6400}, `{"edm":{}}`: {"edm", 6400}, `{"edm":{"T":400}}`: {"edm", 400},
	})
}

// checkForms decodes JSON to a field of several forms, and what the field is written as again.
func checkForms[F any](t *testing.T, tests map[string]F) {
	t.Helper()
	for body, want := range tests {
		var got, back F
		if err := DecodeStruct([]byte(body), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", body, got, err)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := DecodeStruct(again, &back); err != nil || !reflect.DeepEqual(back, got) {
			t.Errorf("%s: came back from %s as %+v, %v", body, again, back, err)
		}
	}
}

// What a request resolved to travels as JSON and must be a request itself.
func TestResolvedRequestDecodesAgain(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","labels":[-1,3],"nfe":9,"grid":{"edm":{"sigma_max":20}},"schedule":{"edm":{"T":400}},` +
			`"seed":18446744073709551615}`,
		`{"model":"m","n":1,"grid":{"sigma":[2,1]},"lower_order_final":false}`,
	} {
		var r, back Sample
		if err := decode([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if err := decode(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(r, back) {
			t.Errorf("%s: came back as %+v", text, back)
		}
	}
}

func TestRowsOfSample(t *testing.T) {
	for body, want := range map[string]int{
		`"n":7`: 7, `"labels":[1,2]`: 2, `"n":0`: -1, `"n":-3`: -1, `"labels":[]`: -1, `"n":2,"labels":[1,2]`: -1,
		`"every":0`: -1,
	} {
		var r Sample
		n, err := 0, decode([]byte(`{"model":"m","steps":2,`+body+`}`), &r)
		if err == nil {
			n, err = r.CheckRows()
		}
		if want < 0 && ErrorOf(err).code() != BadRequest || want >= 0 && (err != nil || n != want) {
			t.Errorf("%s: got %d, %v", body, n, err)
		}
	}
}

func (e *Error) code() Code {
	if e == nil {
		return ""
	}
	return e.Code
}

func TestCreateRunKeepsTheConfiguration(t *testing.T) {
	var r, back CreateRun
	if err := decode([]byte(`{"name":"r1","stage":"pretrain","lr":0.004,"network":{"model_type":"SongUNet"}}`),
		&r); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Stage   string          `json:"stage"`
		LR      float64         `json:"lr"`
		Network json.RawMessage `json:"network"`
	}
	if err := DecodeStruct(r.Config, &config); err != nil {
		t.Fatal(err)
	}
	if config.Stage != "pretrain" || config.LR != 0.004 || string(config.Network) != `{"model_type":"SongUNet"}` {
		t.Errorf("got %+v", config)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(text, &back); err != nil || !reflect.DeepEqual(r, back) {
		t.Errorf("%s came back as %+v, %v", text, back, err)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"a", "0", "digits", "a.b_c-d", strings.Repeat("x", 64)} {
		if err := CheckName("name", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "A", ".", "..", ".a", "-a", "a/b", "a b", "ä", strings.Repeat("x", 65), "a\n"} {
		if err := CheckName("name", name); ErrorOf(err).code() != BadRequest {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestEveryRequestHasUsableDefaults(t *testing.T) {
	tests := map[string]Request{
		`{"schedule":"edm"}`:                             new(EvaluateSchedule),
		`{"schedule":"edm","t":[0,1],"labels":[0]}`:      new(EvaluateSchedule),
		`{"run":"r"}`:                                    new(TrainStep),
		`{"run":"r","from":0}`:                           new(WatchRun),
		`{"run":"r","kimg":1.5}`:                         new(StartRun),
		`{"model":"m"}`:                                  new(Denoise),
		`{"schedule":"s","model":"m"}`:                   new(ScheduleGradient),
		`{"model":"m","dataset":"d"}`:                    new(EvaluateModel),
		`{"dataset":"d"}`:                                new(Dataset),
		`{"name":"s","kind":"edm"}`:                      new(MakeSchedule),
		`{"name":"s","model":"m","dataset":"d","nfe":3}`: new(MakePlan),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","basis":"dct","k":16,"T":4}`:        new(MakeSchedule),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","nfe":3,"second_point":"midpoint"}`: new(MakeSchedule),
		`{"name":"m"}`:                                    new(LoadModel),
		`{"run":"r","name":"m","replace":true}`:           new(SaveModel),
		`{"name":"d"}`:                                    new(PutDataset),
		`{"name":"s","basis":"dct","k":16}`:               new(PutSchedule),
		`{"name":"b"}`:                                    new(PutBasis),
		`{"name":"m","config_bytes":1,"weights_bytes":8}`: new(PutModel),
		``: new(Empty),
	}
	for body, request := range tests {
		if err := decode([]byte(body), request); err != nil {
			t.Errorf("%T: %v", request, err)
		}
		// What it resolved to is read exactly by languages whose numbers are doubles.
		if text, err := json.Marshal(request); err != nil || regexp.MustCompile(`[0-9]{17}`).Match(text) {
			t.Errorf("%T resolved to %s, %v", request, text, err)
		}
	}
	for body, request := range map[string]Request{
		`{"name":"s","model":"m","dataset":"d","nfe":3,"points":9}`:                             new(MakePlan),
		`{"name":"s","dataset":"d","nfe":3}`:                                                    new(MakePlan),
		`{"name":"s","model":"m","dataset":"d","solvers":["rk4"],"nfe":3}`:                      new(MakePlan),
		`{"name":"s","model":"m","dataset":"d"}`:                                                new(MakePlan),
		`{"name":"s","model":"m","dataset":"d","nfe":0}`:                                        new(MakePlan),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","k":16}`:                       new(MakeSchedule),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","basis":"dct","k":0}`:          new(MakeSchedule),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","T":1,"g0":2}`:                 new(MakeSchedule),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","nfe":2}`:                      new(MakeSchedule),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","nfe":9,"T":400}`:              new(MakeSchedule),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","nfe":9,"second_point":"end"}`: new(MakeSchedule),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","second_point":"endpoint"}`:    new(MakeSchedule),
		`{"name":"s","kind":"edm","basis":"dct"}`:                                               new(MakeSchedule),
		`{"name":"s","kind":"edm","dataset":"d"}`:                                               new(MakeSchedule),
		`{"name":"s","kind":"linear"}`:                                                          new(MakeSchedule),
		`{"name":"s","kind":"geodesic","model":"m"}`:                                            new(MakeSchedule),
		`{"name":"s","kind":"edm","c":0}`:                                                       new(MakeSchedule),
		`{"name":"b","kind":"pca"}`:                                                             new(MakeBasis),
		`{"name":"b","dataset":"d"}`:                                                            new(MakeBasis),
		`{"name":"b","kind":"pca","dataset":"d","k":0}`:                                         new(MakeBasis),
		`{"name":"s","basis":"dct","cuts":[]}`:                                                  new(PutSchedule),
		`{"name":"s","basis":"dct","cuts":[2,2]}`:                                               new(PutSchedule),
		`{"name":"s","basis":"dct","cuts":[0,2]}`:                                               new(PutSchedule),
		`{"name":"s","basis":"dct","cuts":[2],"k":4}`:                                           new(PutSchedule),
		`{"name":"s","kind":"geodesic","model":"m","dataset":"d","cuts":[2]}`:                   new(MakeSchedule),
		`{"name":"s","kind":"edm","cuts":[2]}`:                                                  new(MakeSchedule),
		`{"run":"r","steps":0}`:                                                                 new(TrainStep),
		`{"run":"r","kimg":-1}`:                                                                 new(StartRun),
		`{"schedule":"edm","points":1}`:                                                         new(EvaluateSchedule),
		`{"name":"s","k":4}`:                                                                    new(PutSchedule),
		`{"name":"s","basis":"dct","k":0}`:                                                      new(PutSchedule),
		`{"schedule":"s","model":"m","mode":"x"}`:                                               new(ScheduleGradient),
	} {
		if err := decode([]byte(body), request); ErrorOf(err).code() != BadRequest {
			t.Errorf("%T %s: got %v", request, body, err)
		}
	}
}

// decode reads one JSON object into req, as Message.Decode does.
func decode(body []byte, req Request) error {
	m, err := ReadMessage(body)
	if err != nil {
		return err
	}
	return m.Decode(req)
}
