package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
)

// FuzzDecode reads schedule files. What is taken rises from its g0 to its end at every time and is written back as a
// file that reads the same; what is refused is refused as an *Error.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"format":"anisoflight-schedule","version":1,"family":{"per_class":true,"basis":"dct","k":16},"labels":[0,2],` +
			`"T":6400,"g0":1e-9,"theta":[[[0.5,-1],[1,2]],[[0,0],[3,4]]]}`,
		`{"format":"anisoflight-schedule","version":1,"family":{"basis":"none"},"paths":[[{"t":[0,1.5],"g":[0.1,2]}]],` +
			`"energy":[[{"sigma":[0.5,1],"f":[3,2],"stderr":[0,0.1]}]]}`,
		`{"format":"anisoflight-schedule","version":1,"family":{"basis":"dct","k":4},` +
			`"paths":[[{"t":[0,1,2],"g":[1e-9,1,400]},{"t":[0,2],"g":[1e-9,400]}]],"provenance":{"kind":"uploaded"}}`,
		`{"format":"x"}`, `{}`, `{}{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Decode(bytes.NewReader(text))
		if err != nil {
			if !errors.As(err, new(*Error)) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		g, gdot := make([]float64, s.J()), make([]float64, s.J())
		for row := range s.Rows() {
			last := make([]float64, s.J())
			for i := range 9 {
				s.Eval(row, s.T()*float64(i)/8, g, gdot)
				for j := range g {
					if !(g[j] >= last[j]) || math.IsInf(g[j], 0) || math.IsNaN(gdot[j]) {
						t.Fatalf("row %d, t = %v: g = %v after %v, ġ = %v", row, s.T()*float64(i)/8, g, last, gdot)
					}
				}
				copy(last, g)
			}
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(bytes.NewReader(written))
		if err != nil {
			t.Fatalf("written as %s, which is refused: %v", written, err)
		}
		if rewritten, err := json.Marshal(again); err != nil || !bytes.Equal(rewritten, written) {
			t.Fatalf("%s is written as %s, %v", written, rewritten, err)
		}
	})
}
