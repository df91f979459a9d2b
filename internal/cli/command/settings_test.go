package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// flagsOf returns the parsed flags of options.
func flagsOf(t *testing.T, options []Option, args ...string) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.String("config", "", "")
	for _, o := range options {
		o.register(flags)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return flags
}

// A shell leaves ~ alone within quotes, behind an equals sign and in a file.
func TestHomeFolderFromEveryPlace(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	options := []Option{{Name: "data", Default: "data"}}
	check := func(want string, args ...string) {
		t.Helper()
		if s, err := Resolve(options, flagsOf(t, options, args...)); err != nil || s.Text("data") != want {
			t.Errorf("%v: %v, %v, want %s", args, s, err, want)
		}
	}
	check("data")
	check(home+"/a b", "--data=~/a b")
	check(home, "--data", "~")
	check("~other/x", "--data", "~other/x")
	if err := os.WriteFile(filepath.Join(home, "c.yaml"), []byte("data: ~/file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(home+"/file", "--config=~/c.yaml")
	t.Setenv("ANISOFLIGHT_DATA", "~/variable")
	check(home + "/variable")
}

// One option of each kind, under the same value from every place.
func TestKindsFromEveryPlace(t *testing.T) {
	options := []Option{
		{Name: "text", Kind: Text},
		{Name: "number", Kind: Number},
		{Name: "whole", Kind: Whole},
		{Name: "seed", Kind: Seed},
		{Name: "toggle", Kind: Toggle},
		{Name: "object", Kind: Object},
		{Name: "T", Kind: Number},
	}
	given := map[string]string{
		"text": "a,b: c", "number": "1e-9", "whole": "-3", "seed": "18446744073709551615",
		"toggle": "true", "object": `{"Nested":{"K":[1,2]}}`, "T": "6400",
	}
	want := map[string]any{
		"text": "a,b: c", "number": 1e-9, "whole": int64(-3), "seed": uint64(1<<64 - 1),
		"toggle": true, "object": map[string]any{"Nested": map[string]any{"K": []any{1.0, 2.0}}}, "T": 6400.0,
	}
	check := func(t *testing.T, args ...string) {
		t.Helper()
		s, err := Resolve(options, flagsOf(t, options, args...))
		if err != nil {
			t.Fatal(err)
		}
		got := s.Request(options) // what is given
		// YAML tells whole numbers from others inside objects, JSON does not.
		if raw, err := json.Marshal(got["object"]); err != nil || string(raw) != given["object"] {
			t.Errorf("object is %s, want %s", raw, given["object"])
		}
		got["object"] = want["object"]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("values differ (-want +got):\n%s", diff)
		}
	}
	t.Run("flags", func(t *testing.T) {
		var args []string
		for name, v := range given {
			args = append(args, "--"+name+"="+v)
		}
		check(t, args...)
	})
	t.Run("environment", func(t *testing.T) {
		for name, v := range given {
			t.Setenv("ANISOFLIGHT_"+strings.ToUpper(name), v)
		}
		check(t)
	})
	t.Run("file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "settings.yaml")
		content := `
text: "a,b: c"
number: 1.0e-9
whole: -3
seed: 18446744073709551615
toggle: true
object: {Nested: {K: [1, 2]}}
T: 6400
`
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, "--config", file)
	})
	t.Run("nowhere", func(t *testing.T) {
		s, err := Resolve(options, flagsOf(t, options))
		if err != nil {
			t.Fatal(err)
		}
		if fields := s.Request(options); len(fields) != 0 {
			t.Errorf("a request of nothing given holds %v", fields)
		}
	})
}

// YAML's own types are the text that was written, where an option is a text; numbers and switches stay what they are.
func TestTextsOfYAMLAreAsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	options := []Option{
		{Name: "text"}, {Name: "whole", Kind: Whole}, {Name: "number", Kind: Number}, {Name: "object", Kind: Object},
	}
	resolve := func(content string) (*Settings, error) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return Resolve(options, flagsOf(t, options, "--config", file))
	}
	for _, text := range []string{
		"1.10", "010", "0x10", "1e3", "1_000", ".5", "2026-11-28", "2026-11-28 12:00:00", "yes", "No", "on", "TRUE",
		"null", "Null", ".inf", ".NaN", "!!str 7",
	} {
		want := strings.TrimPrefix(text, "!!str ")
		if s, err := resolve("text: " + text); err != nil || s.Text("text") != want {
			t.Errorf("text: %s is %v, %v", text, s, err)
		}
		if s, err := resolve("object: &x {a: 1}\ntext: &y " + text + "\n"); err != nil || s.Text("text") != want {
			t.Errorf("text: %s with an anchor is %v, %v", text, s, err)
		}
	}
	if _, err := resolve("text:\n"); err == nil || !strings.Contains(err.Error(), "must be a single string") {
		t.Errorf("an empty value: %v", err)
	}
	s, err := resolve("whole: 1e3\nnumber: &n .5\n" +
		"object: {basis: 2026-11-28, code: 010, n: 10, f: 1e3, y: true, of: *n}\n")
	want := map[string]any{
		"whole": int64(1000), "number": 0.5,
		"object": map[string]any{"basis": "2026-11-28", "code": "010", "n": 10, "f": 1000.0, "y": true, "of": 0.5},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.Request(options)); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
	type family struct {
		Basis string `json:"basis"`
		K     int    `json:"k"`
	}
	options = append(options,
		Option{Name: "family", Kind: Object, Type: reflect.TypeFor[family]()},
		Option{Name: "names", Kind: Object, List: true, Type: reflect.TypeFor[[]string]()},
		Option{Name: "schedules", Kind: Object, List: true, Type: reflect.TypeFor[[]family]()},
		Option{Name: "schedule", Kind: Object, Type: reflect.TypeFor[family]()},
		Option{Name: "nfe", Kind: Object, List: true, Type: reflect.TypeFor[[]int]()},
	)
	for _, name := range []string{"1.10", "010", "1e3", "2026-11-28", "null", "true", ".inf", "0x10", "1_000"} {
		want := map[string]any{
			"family": map[string]any{"basis": name, "k": 3}, "names": []any{name, "b"},
			"schedules": []any{name, map[string]any{"k": 3, "basis": name}},
			"schedule":  name, "nfe": []any{9, 11},
		}
		s, err := resolve(strings.ReplaceAll("family: {basis: &n NAME, k: 3}\nnames: [*n, b]\n"+
			"schedules: [NAME, {k: 3, basis: NAME}]\nschedule: NAME\nnfe: [9, 11]\n", "NAME", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.Request(options)); diff != "" {
			t.Errorf("values of names %s differ (-want +got):\n%s", name, diff)
		}
		args := []string{"--names=" + name, "--schedules", name + ",edm", "--schedule", name}
		s, err = Resolve(options, flagsOf(t, options, args...))
		want = map[string]any{"names": []any{name}, "schedules": []any{name, "edm"}, "schedule": name}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.Request(options)); diff != "" {
			t.Errorf("flags %s differ (-want +got):\n%s", name, diff)
		}
	}
	if s, err := resolve("family: {k: &k 3, basis: *k}\n"); err != nil ||
		!reflect.DeepEqual(s.Value("family"), map[string]any{"k": 3, "basis": "3"}) {
		t.Errorf("an anchor that is a number and a name: %v, %v", s, err)
	}
	if _, err := resolve("schedules: &x [*x]\n"); err == nil {
		t.Error("an anchor of names that contains itself is read")
	}
	if s, err := resolve("whole: 010\n"); err != nil || s.Whole("whole") != 10 {
		t.Errorf("010 is %v, %v", s, err)
	}
	if _, err := resolve("object: &x [*x]\n"); err == nil {
		t.Error("an anchor that contains itself is read")
	}
}

// The flag goes before the environment, this before the file, and the file before the default.
func TestPlacesInOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(file, []byte("listen: file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := []Option{{Name: "listen", Default: "default"}}
	for _, c := range []struct{ flag, env, file, want string }{
		{"", "", "", "default"},
		{"", "", file, "file"},
		{"", "env", file, "env"},
		{"flag", "env", file, "flag"},
		{"default", "env", file, "default"}, // a flag that says the default
	} {
		t.Setenv("ANISOFLIGHT_LISTEN", c.env)
		t.Setenv("ANISOFLIGHT_CONFIG", c.file)
		var args []string
		if c.flag != "" {
			args = []string{"--listen", c.flag}
		}
		s, err := Resolve(options, flagsOf(t, options, args...))
		if err != nil || s.Text("listen") != c.want || s.Given("listen") != (c.flag+c.env+c.file != "") {
			t.Errorf("%+v: %v, %v", c, s, err)
		}
	}
}

// Lists on the command line become what a request wants.
func TestListsOfWords(t *testing.T) {
	for _, c := range []struct{ value, want any }{
		{"5,9", []any{5.0, 9.0}},
		{"ab", []any{"ab"}},
		{5.0, []any{5.0}},
		{[]any{"edm"}, []any{"edm"}},
		{map[string]any{"edm": 1}, map[string]any{"edm": 1}},
	} {
		if got := (Option{Kind: Object}).listed(c.value); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v is %v, want %v", c.value, got, c.want)
		}
	}
}
