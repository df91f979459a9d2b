package cli

import (
	"reflect"
	"strings"
	"testing"
)

// What the command measures and prints is tested in client_py/tests/test_client_compare.py.

func TestCompareRefuses(t *testing.T) {
	dir := folder(t)
	for want, args := range map[string][]string{
		"--model is missing":         {"--solvers", "ab"},
		`got "five"`:                 {"--model", "bars", "--nfe", "five"},
		"list of at least one":       {"--model", "bars", "--solvers", ","},
		"--seeds must be at least 1": {"--model", "bars", "--seeds", "0"},
		"NAME:FIELD=VALUE":           {"--model", "bars", "--solvers", "ab:2"},
		`got "rk4"`:                  {"--model", "bars", "--solvers", "ab,rk4:order=2"},
		`got "karras"`:               {"--model", "bars", "--grids", "edm,karras"},
	} {
		if status, _, stderr := call(t, append([]string{"compare", "--data", dir, "--device", "go"},
			args...)...); status == 0 || !strings.Contains(strings.ToLower(stderr), strings.ToLower(want)) {
			t.Errorf("compare %v: status %d, says %q, want %q", args, status, stderr, want)
		}
	}
}

// A grid on the command line becomes what a request wants.
func TestGridOfAWord(t *testing.T) {
	grid, err := parseGrid("ays-svd")
	if err != nil || grid.Name != "ays-svd" || !reflect.DeepEqual(grid.Value, map[string]any{"table": "ays-svd"}) {
		t.Errorf("grid %+v, %v", grid, err)
	}
}
