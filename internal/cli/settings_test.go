package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// call runs the command line and returns its exit status and output.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, &out, &err)
	return status, out.String(), err.String()
}

func configFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWrongUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"unknown command":    {[]string{"nonsense"}, `unknown command "nonsense"`},
		"mistyped command":   {[]string{"smaple"}, `unknown command "smaple"; did you mean "sample"?`},
		"gone compare":       {[]string{"compare", "--model", "m"}, `"compare" is gone since 0.1: measure samplers`},
		"gone bench":         {[]string{"schedule", "bench", "--dataset", "d"}, `"bench" is gone since 0.1: measure`},
		"gone nodes":         {[]string{"schedule", "nodes", "--name", "s"}, `"nodes" is gone since 0.1: search levels and`},
		"with a flag":        {[]string{"smaple", "--model", "m"}, `unknown command "smaple"; did you mean "sample"?`},
		"of a group":         {[]string{"schedule", "lsit"}, `unknown command "lsit"; did you mean "list"?`},
		"mistyped flag":      {[]string{"sample", "--modle", "m"}, `unknown flag: --modle; did you mean "--model"?`},
		"unknown flag":       {[]string{"doctor", "--nonsense"}, "--nonsense"},
		"stray argument":     {[]string{"serve", "here"}, `"here"`},
		"not a number":       {[]string{"schedule", "show", "--points", "many"}, "--points must be a whole number, got"},
		"no such log level":  {[]string{"doctor", "--log-level", "loud"}, "loud"},
		"no such log format": {[]string{"doctor", "--log-format", "xml"}, "xml"},
		"missing file":       {[]string{"doctor", "--config", "nowhere.yaml"}, "nowhere.yaml does not exist"},
		"unknown setting": {
			[]string{"serve", "--config", configFile(t, "listne: :1\n")},
			`unknown setting "listne"; did you mean "listen"?; --help lists them`,
		},
		"no connections":       {[]string{"serve", "--max-connections", "-1"}, "--max-connections must be at least 1, got"},
		"no bytes":             {[]string{"serve", "--max-bytes=0"}, "--max-bytes must be at least 1, got 0"},
		"too many bytes":       {[]string{"serve", "--max-message-bytes=9223372036854775807"}, "must be at most 1e16"},
		"no slots":             {[]string{"serve", "--slots=-3"}, "--slots must be at least 1, got -3"},
		"grace without end":    {[]string{"serve", "--grace", "inf"}, "--grace must be finite, got +Inf"},
		"grace before the end": {[]string{"serve", "--grace=-1"}, "--grace must be at least 0, got -1"},
		"grace of centuries":   {[]string{"serve", "--grace", "1e12"}, "--grace must be at most 1e9"},
		"no patience":          {[]string{"serve", "--stall", "0"}, "--stall must be positive, got 0"},
		"no share of memory":   {[]string{"doctor", "--memory-fraction", "NaN"}, "--memory-fraction must be finite, got NaN"},
		"bounds in a file":     {[]string{"serve", "--config", configFile(t, "max_calls: 0\n")}, "--max-calls must be"},
		"infinity in a file":   {[]string{"serve", "--config", configFile(t, "grace: .inf\n")}, "--grace must be finite"},
		"infinity in a list": {
			[]string{"sample", "--model", "m", "--config", configFile(t, "grid: {sigma: [.inf, 1]}\n")},
			"--grid must hold finite numbers",
		},
		"rate that is no number": {[]string{"train", "--name", "r", "--lr", "nan"}, "--lr must be finite, got NaN"},
		"no columns":             {[]string{"sample", "--model", "m", "--columns", "0"}, "--columns must be at least 1"},
		"not YAML":               {[]string{"serve", "--config", configFile(t, "a: [\n")}, "configuration file"},
		"a list for a text":      {[]string{"serve", "--config", configFile(t, "listen: [a, b]\n")}, "single string"},
		"model is missing":       {[]string{"sample"}, "--model"},
		"name is missing":        {[]string{"train"}, "--name"},
		"schedule is missing":    {[]string{"schedule", "show"}, "--schedule"},
		"unwritable image":       {[]string{"sample", "--model", "m", "--out", "a.gif"}, ".png or .npz"},
		"broken JSON":            {[]string{"sample", "--model", "m", "--grid", "{"}, "--grid must be JSON"},
		"labels in a bad list":   {[]string{"sample", "--model", "m", "--labels", "3-1"}, "labels"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := call(t, c.args...)
			if status != 2 || !strings.Contains(stderr, c.says) || !strings.Contains(stderr, "--help") || stdout != "" {
				t.Errorf("status %d, output %q, error %q; want status 2 and an error with %q", status, stdout, stderr, c.says)
			}
		})
	}
}

func TestParseLabels(t *testing.T) {
	for in, want := range map[string][]int32{
		"3": {3}, "0,1, 2": {0, 1, 2}, "0-3,7,7": {0, 1, 2, 3, 7, 7}, "-1": {-1}, "-1-1": {-1, 0, 1},
		"": nil, "a": nil, "1-": nil, "5-4": nil, "0-99999999": nil, "99999999999": nil,
	} {
		got, err := parseLabels(in)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("labels %q are %v (%v), want %v", in, got, err, want)
		}
	}
}

func TestCompleteSample(t *testing.T) {
	for name, c := range map[string]struct{ in, want map[string]any }{
		"nothing": {map[string]any{}, map[string]any{"n": 64, "steps": 18}},
		"labels": {
			map[string]any{"labels": "0-1", "nfe": int64(5)},
			map[string]any{"labels": []int32{0, 1}, "nfe": int64(5)},
		},
		"one label": {
			map[string]any{"labels": 7.0, "nfe": int64(5)},
			map[string]any{"labels": []int32{7}, "nfe": int64(5)},
		},
		"explicit grid": {
			map[string]any{"n": int64(1), "grid": map[string]any{"t": []any{1.0, 0.0}}},
			map[string]any{"n": int64(1), "grid": map[string]any{"t": []any{1.0, 0.0}}},
		},
		"edm grid": {
			map[string]any{"n": int64(1), "grid": "edm"},
			map[string]any{"n": int64(1), "grid": "edm", "steps": 18},
		},
	} {
		if err := completeSample(c.in); err != nil || !reflect.DeepEqual(c.in, c.want) {
			t.Errorf("%s: %v (%v), want %v", name, c.in, err, c.want)
		}
	}
}
