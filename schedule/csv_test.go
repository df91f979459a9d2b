package schedule

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// A table written and read makes the same schedule, bit for bit.
func TestCSVRoundTrip(t *testing.T) {
	odd := Isotropic(path(t, []float64{0, math.Nextafter(0.1, 1), math.Pi * 1e5},
		[]float64{5e-324, math.Nextafter(0.3, 1), math.MaxFloat64}))
	for name, s := range map[string]*Schedule{
		"odd numbers": odd, "two subspaces": anisotropic(t),
		"per class": perClass(t),
	} {
		var text strings.Builder
		if err := WriteCSV(&text, s.Table()); err != nil {
			t.Fatal(err)
		}
		rows, err := ReadCSV(strings.NewReader(text.String()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := FromTable(s.Family(), rows)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(back.Table(), s.Table()) {
			t.Errorf("%s: comes back different", name)
		}
	}
}

func TestReadCSV(t *testing.T) {
	got, err := ReadCSV(strings.NewReader("g, t,note\n1e-9,0,start\n400, 400,\"the, end\"\n"))
	if want := []TableRow{{-1, 0, 0, 1e-9}, {-1, 0, 400, 400}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for text, want := range map[string]Error{
		"":                             {-1, "is empty"},
		"label,t\n0,1\n":               {-1, `no column "g"`},
		"t,g\n0,1\n1,x\n":              {1, `g must be a number, got "x"`},
		"t,g\n0,1\n,2\n":               {1, `t must be a number, got ""`},
		"label,t,g\n0.5,0,1\n":         {0, `label must be a whole number, got "0.5"`},
		"subspace,t,g\n4294967296,0,1": {0, "subspace must be a whole number"},
		"t,g\n0,1\n1\n":                {1, "line 3"},
		"t,g\n0,\"1\n":                 {0, "not CSV"},
	} {
		_, err := ReadCSV(strings.NewReader(text))
		var bad *Error
		if !errors.As(err, &bad) || bad.Row != want.Row || !strings.Contains(bad.Msg, want.Msg) {
			t.Errorf("%q: %v; want row %d, %q", text, err, want.Row, want.Msg)
		}
	}
	broken := errors.New("broken disk")
	if _, err := ReadCSV(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a failing reader: %v", err)
	}
}
