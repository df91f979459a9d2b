package cli

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/compare"
)

// What the command measures is compared with the Python package's in
// client_py/tests/test_client_compare.py.

func TestComparePrintsATable(t *testing.T) {
	var out strings.Builder
	rows := []compare.Row{
		{Schedule: "own", Grid: "edm", Solver: "ab", NFE: 6, Evaluations: 5, ODEError: 1.25, Frechet: &compare.Spread{Mean: 2, Min: 1.5, Max: 2.5}, Seconds: 0.5},
		{Schedule: "own", Grid: "edm", Solver: "unipc", NFE: 1, Err: errors.New("too few")},
	}
	if err := compareTable(&out, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if got := strings.Fields(lines[1]); !slices.Equal(got, []string{"own", "edm", "ab", "5", "1.25", "2", "±", "0.5", "0.5"}) {
		t.Errorf("row is %q", got)
	}
	if !strings.Contains(lines[2], "too few") {
		t.Errorf("row is %q", lines[2])
	}
}

func TestCompareRefuses(t *testing.T) {
	dir := folder(t)
	for want, args := range map[string][]string{
		"--model is missing":         {"--solvers", "ab"},
		`not "five"`:                 {"--model", "bars", "--nfe", "five"},
		"--solvers is empty":         {"--model", "bars", "--solvers", ","},
		"--seeds must be at least 1": {"--model", "bars", "--seeds", "0"},
		"NAME:FIELD=VALUE":           {"--model", "bars", "--solvers", "ab:2"},
		`no solver is called "rk4"`:  {"--model", "bars", "--solvers", "ab,rk4:order=2"},
		"geodesic ays-sd15":          {"--model", "bars", "--grids", "edm,karras"},
		"no model":                   {"--model", "nothing"},
	} {
		if status, _, stderr := call(t, append([]string{"compare", "--data", dir, "--device", "go"}, args...)...); status == 0 || !strings.Contains(strings.ToLower(stderr), strings.ToLower(want)) {
			t.Errorf("compare %v: status %d, says %q, want %q", args, status, stderr, want)
		}
	}
}

// Lists on the command line become what a request wants.
func TestListsOfWords(t *testing.T) {
	grid, err := parseGrid("ays-svd")
	if err != nil || grid.Name != "ays-svd" || !reflect.DeepEqual(grid.Options["grid"], map[string]any{"table": "ays-svd"}) {
		t.Errorf("grid %+v, %v", grid, err)
	}
	fields := map[string]any{"nfe": "5,9", "solvers": "ab", "schedules": []any{"edm"}}
	for _, name := range []string{"nfe", "solvers", "schedules", "absent"} {
		if err := spread(fields, name); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[string]any{"nfe": []any{5.0, 9.0}, "solvers": []any{"ab"}, "schedules": []any{"edm"}}; !reflect.DeepEqual(fields, want) {
		t.Errorf("fields %v, want %v", fields, want)
	}
}
