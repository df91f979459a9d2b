package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/cli/schedules"
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

func TestFlagBeforeEnvironmentBeforeFileBeforeDefault(t *testing.T) {
	file := configFile(t, "listen: file:1\ndata: from-file\n")
	for _, c := range []struct {
		name, flag, env, file string
		want                  any
		source                string
	}{
		{"nothing", "", "", "", "127.0.0.1:8815", "default"},
		{"file", "", "", file, "file:1", "file " + file},
		{"environment", "", "env:1", "", "env:1", "environment ANISOFLIGHT_LISTEN"},
		{"environment over file", "", "env:1", file, "env:1", "environment ANISOFLIGHT_LISTEN"},
		{"flag over all", "flag:1", "env:1", file, "flag:1", "flag --listen"},
		{"flag that says the default", "127.0.0.1:8815", "env:1", file, "127.0.0.1:8815", "flag --listen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("ANISOFLIGHT_LISTEN", c.env)
			args := []string{"config", "serve", "--json"}
			if c.flag != "" {
				args = append(args, "--listen", c.flag)
			}
			if c.file != "" {
				args = append(args, "--config", c.file)
			}
			status, stdout, stderr := call(t, args...)
			if status != 0 {
				t.Fatalf("status %d: %s", status, stderr)
			}
			var got map[string]settingJSON
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatal(err)
			}
			if want := (settingJSON{Value: c.want, Source: c.source}); got["listen"] != want {
				t.Errorf("listen is %v, want %v", got["listen"], want)
			}
			if want := (settingJSON{Value: "from-file", Source: "file " + file}); c.file != "" && got["data"] != want {
				t.Errorf("data is %v, want %v", got["data"], want)
			}
		})
	}
}

func TestEnvironmentNamesTheFile(t *testing.T) {
	t.Setenv("ANISOFLIGHT_CONFIG", configFile(t, "log_level: debug\n"))
	if _, stdout, _ := call(t, "config"); !strings.Contains(stdout, `"debug"`) {
		t.Errorf("ANISOFLIGHT_CONFIG was not read:\n%s", stdout)
	}
	other := configFile(t, "log_level: error\n")
	if _, stdout, _ := call(t, "config", "--config", other); !strings.Contains(stdout, `"error"`) {
		t.Errorf("--config does not go before ANISOFLIGHT_CONFIG:\n%s", stdout)
	}
}

func TestWrongUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"unknown command":    {[]string{"nonsense"}, `unknown command "nonsense"`},
		"mistyped command":   {[]string{"smaple"}, `unknown command "smaple"; did you mean "sample"?`},
		"of a group":         {[]string{"schedule", "lsit"}, `unknown command "lsit"; did you mean "list"?`},
		"mistyped flag":      {[]string{"sample", "--modle", "m"}, `unknown flag: --modle; did you mean "--model"?`},
		"unknown flag":       {[]string{"doctor", "--nonsense"}, "--nonsense"},
		"stray argument":     {[]string{"serve", "here"}, `"here"`},
		"not a number":       {[]string{"schedule", "show", "--points", "many"}, "--points must be a whole number, got"},
		"no such log level":  {[]string{"config", "--log-level", "loud"}, "loud"},
		"no such log format": {[]string{"config", "--log-format", "xml"}, "xml"},
		"missing file":       {[]string{"config", "--config", "nowhere.yaml"}, "nowhere.yaml does not exist"},
		"unknown setting": {
			[]string{"config", "--config", configFile(t, "listne: :1\n")},
			`unknown setting "listne"; did you mean "listen"?; --help lists them`,
		},
		"not YAML":             {[]string{"config", "--config", configFile(t, "a: [\n")}, "configuration file"},
		"a list for a text":    {[]string{"config", "--config", configFile(t, "listen: [a, b]\n")}, "single string"},
		"model is missing":     {[]string{"sample"}, "--model"},
		"name is missing":      {[]string{"train"}, "--name"},
		"nodes for no solver":  {[]string{"schedule", "nodes", "--name", "s", "--dataset", "d", "--nfe", "3"}, "--solver"},
		"schedule is missing":  {[]string{"schedule", "show"}, "--schedule"},
		"unwritable image":     {[]string{"sample", "--model", "m", "--out", "a.gif"}, ".png or .npz"},
		"broken JSON":          {[]string{"sample", "--model", "m", "--grid", "{"}, "--grid must be JSON"},
		"labels in a bad list": {[]string{"sample", "--model", "m", "--labels", "3-1"}, "labels"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := call(t, c.args...)
			if status != 2 || !strings.Contains(stderr, c.says) || !strings.Contains(stderr, "--help") || stdout != "" {
				t.Errorf("status %d, output %q, error %q; want status 2 and an error with %q", status, stdout, stderr, c.says)
			}
		})
	}
}

// Every command explains itself with an example that names it.
func TestHelpHasExamples(t *testing.T) {
	root := newRoot()
	for _, cmd := range slices.Concat(root.Commands(), schedules.Group.Command().Commands()) {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		if cmd.Short == "" || !strings.Contains(cmd.Example, "anisoflight ") || !strings.Contains(cmd.Example, cmd.Name()) {
			t.Errorf("%s: short %q, example %q", cmd.CommandPath(), cmd.Short, cmd.Example)
		}
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

// Every command with settings has them below config: each with its value, or what holds without one.
func TestConfigShowsWhatHolds(t *testing.T) {
	for _, c := range []struct{ command, setting, want string }{
		{"config", "listen", `"127.0.0.1:8815"  default`},
		{"config serve", "max_bytes", "1 GiB default"},
		{"config sample", "model", "- missing"},
		{"config sample", "solver", "the schedule's own, else heun default"},
		{"config sample --solver ab", "solver", `"ab" flag --solver`},
		{"config train", "lr", "1e-3 in pretrain, 1e-5 elsewhere default"},
		{"config train --lr 2e-3", "lr", "0.002 flag --lr"},
		{"config schedule nodes", "T", "6400 default"},
		{"config basis make", "k", "a quarter of the pixels default"},
		{"config model list --token secret", "token", `"(secret)" flag --token`},
	} {
		status, out, stderr := call(t, strings.Split(c.command, " ")...)
		found := ""
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); words[0] == c.setting {
				found = strings.Join(words[1:], " ")
			}
		}
		if want := strings.Join(strings.Fields(c.want), " "); status != 0 || found != want {
			t.Errorf("%s: status %d, %s is %q, want %q\n%s", c.command, status, c.setting, found, want, stderr)
		}
	}
}
