package api

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// FuzzRequests decodes text as every request. What is refused is refused with a code of the client's; what is taken is
// taken again as it is written.
func FuzzRequests(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `[]`, `null`, `{"op":"Sample","model":"digits","n":5,"steps":9,"seed":18446744073709551615}`,
		`{"model":"m","labels":[1,-1],"grid":{"edm":{"sigma_min":0.002,"sigma_max":80,"rho":7}},"steps":3}`,
		`{"model":"m","n":1,"grid":{"sigma":[3,2,0]},"schedule":{"edm":{"T":400}}}`,
		`{"model":"m","n":8.0,"steps":2e1,"seed":"18446744073709551615","every":null}`, `{"op":null,"seed":1e19}`,
		`{"model":"m","n":1,"grid":{"t":[1,0.5]},"solver":"unipc","order":3,"variant":"bh1"}`,
		`{"name":"a","kind":"geodesic","model":"m","dataset":"d","basis":"dct","k":9,"nfe":9,"cuts":[1,2]}`,
		`{"name":"a","stage":"anisotropic","dataset":"d","model":"m","family":{"per_class":true,"basis":"pca","k":4},` +
			`"batch":8}`,
		`{"name":"a","stage":"pretrain","dataset":"d","network":{"model_type":"SongUNet","img_resolution":8},"kimg":1e-3}`,
		`{"name":"a","kind":"geodesic","model":"m","dataset":"d"}`, `{"name":"a","kind":"fit","model":"m",` +
			`"schedule":"s","nfe":3}`,
		`{"name":"a","kind":"cosine","T":4}`, `{"name":"a","kind":"start","dataset":"d"}`,
		`{"schedule":"edm","points":256,"labels":[-1,0]}`, `{"run":"r","steps":3}`, `{"dataset":"d","offset":1,"limit":2}`,
		`{"name":"b","kind":"pca_per_class","clusters":[[0,1],[2]],"dataset":"d","k":3,"replace":true}`,
		`{"seed":1e400}`, `{"seed":-0}`, `{"":{"":[[[[[[]]]]]]}}`, "{\"\\u0000\":\"\\ud800\"}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := ReadMessage(text); err == nil {
			_, _ = m.Op()
		}
		for _, op := range Operations() {
			got := op.New()
			if err := decode(text, got); err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Code == Internal || e.Message == "" {
					t.Fatalf("%T: %v", got, err)
				}
				continue
			}
			if s, ok := got.(*Sample); ok && (s.Steps < 0 || s.Steps > solver.MaxSteps || s.BatchBytes < 1 ||
				s.BatchBytes > 64<<20) {
				t.Fatalf("%s passed as %+v", text, s)
			}
			if m, ok := got.(*MakeSchedule); ok {
				got = m.Of
			}
			written, err := json.Marshal(got)
			if err != nil {
				t.Fatalf("%T: %v", got, err)
			}
			again := reflect.New(reflect.TypeOf(got).Elem()).Interface()
			if err := decode(written, again); err != nil {
				t.Fatalf("%T from %s is written as %s, which is refused: %v", got, text, written, err)
			}
			if rewritten, err := json.Marshal(again); err != nil || string(rewritten) != string(written) {
				t.Fatalf("%T: %s is written as %s, %v", got, written, rewritten, err)
			}
		}
	})
}
