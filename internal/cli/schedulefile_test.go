package cli

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const twoPaths = "label,subspace,t,g\n-1,0,0,1e-09\n-1,0,30,5\n-1,0,400,400\n-1,1,0,1e-09\n-1,1,400,400\n"

// A table comes out as it went in, digit for digit; so does a schedule file, with where it came from.
func TestScheduleFiles(t *testing.T) {
	dir, out := folder(t), t.TempDir()
	table := write(t, filepath.Join(out, "two.csv"), twoPaths)
	must(t, dir, "schedule", "import", "--name", "two", "--file", table, "--basis", "dct", "--k", "16")
	again := filepath.Join(out, "again.csv")
	if got := must(t, dir, "schedule", "export", "--schedule", "two", "--out", again); got != again+": 5 rows\n" ||
		read(t, again) != twoPaths {
		t.Errorf("export says %q and writes\n%s", got, read(t, again))
	}
	first, second := filepath.Join(out, "first.json"), filepath.Join(out, "second.json")
	must(t, dir, "schedule", "export", "--schedule", "two", "--out", first)
	must(t, dir, "schedule", "import", "--name", "copy", "--file", first)
	must(t, dir, "schedule", "export", "--schedule", "copy", "--out", second)
	if read(t, first) != read(t, second) || !strings.Contains(read(t, first), `"kind": "upload"`) {
		t.Errorf("the copy differs:\n%s\n%s", read(t, first), read(t, second))
	}
}

// A basis with vectors travels beside the schedule file.
func TestScheduleFileWithBasis(t *testing.T) {
	dir, out := folder(t), t.TempDir()
	h := math.Sqrt(0.5)
	b, err := basis.Dense(1, 2, map[int][][]float64{0: {{h, h}}, 1: {{h, -h}}})
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := checkpoint.EncodeBasis(b)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(out, "mine", "schedule.json")
	write(t, filepath.Join(filepath.Dir(file), "basis.safetensors"), string(vectors))
	write(t, file, `{"format":"anisoflight-schedule","version":1,
		"family":{"per_class":false,"basis":"pca_per_class","k":1},
		"paths":[[{"t":[0,4],"g":[0.1,4]},{"t":[0,1,4],"g":[0.1,2,4]}]]}`)
	must(t, dir, "schedule", "import", "--name", "pets", "--file", file)
	again := filepath.Join(out, "again", "schedule.json")
	write(t, filepath.Join(filepath.Dir(again), "basis.safetensors"), string(vectors)) // the same basis may be there
	if got := must(t, dir, "schedule", "export", "--schedule", "pets", "--out", again); !strings.Contains(got,
		"basis.safetensors: its basis") {
		t.Errorf("export says %q", got)
	}
	if got := read(t, filepath.Join(filepath.Dir(again), "basis.safetensors")); got != string(vectors) {
		t.Error("the basis comes back different")
	}
	if got := read(t, again); !strings.Contains(got, `"basis": "pets"`) || !strings.Contains(got, `"kind": "upload"`) {
		t.Errorf("the schedule comes back as\n%s", got)
	}
	write(t, filepath.Join(filepath.Dir(again), "basis.safetensors"), "another")
	if status, _, says := call(t, "schedule", "export", "--schedule", "pets", "--out", again, "--data", dir, "--device",
		"go"); status != 1 || !strings.Contains(says, "another basis") {
		t.Errorf("status %d, %q", status, says)
	}
}

func TestScheduleImportRefuses(t *testing.T) {
	dir, out := folder(t), t.TempDir()
	for name, c := range map[string]struct {
		file, text, says string
		more             []string
	}{
		"a falling path": {"a.csv", "t,g\n0,1\n5,2\n6,1\n", "Row 2", nil},
		"t stands still": {"a.csv", "t,g\n0,1\n5,2\n5,3\n", "Row 2", nil},
		"a word":         {"a.csv", "t,g\n0,1\nfive,2\n", `row 1: t must be a number, got "five"`, nil},
		"no g":           {"a.csv", "t\n0\n", `no column "g"`, nil},
		"two subspaces":  {"a.csv", twoPaths, "basis none", nil},
		"no such basis":  {"a.csv", twoPaths, "nobody", []string{"--basis", "nobody"}},
		"k is no square": {
			"a.csv", twoPaths, "k must be a perfect square for basis dct, got 5",
			[]string{"--basis", "dct", "--k", "5"},
		},
		"an unknown field": {"a.json", `{"format":"anisoflight-schedule","version":1,"colour":1}`, "colour", nil},
		"its basis": {
			"a.json",
			`{"format":"anisoflight-schedule","version":1,"family":{"per_class":false,"basis":"pets"},` +
				`"paths":[[{"t":[0,4],"g":[1,4]},{"t":[0,4],"g":[1,4]}]]}`, "pets", nil,
		},
		"no vectors": {
			"b/a.json",
			`{"format":"anisoflight-schedule","version":1,"family":{"per_class":false,"basis":"pets"},` +
				`"paths":[[{"t":[0,4],"g":[1,4]},{"t":[0,4],"g":[1,4]}]]}`, "basis.safetensors", nil,
		},
	} {
		file := write(t, filepath.Join(out, c.file), c.text)
		if name == "no vectors" {
			write(t, filepath.Join(filepath.Dir(file), "basis.safetensors"), "nothing")
		}
		args := append([]string{
			"schedule", "import", "--name", "x", "--file", file, "--data", dir, "--device", "go",
			"--log-level", "error",
		}, c.more...)
		if status, _, says := call(t, args...); status != 1 || !strings.Contains(says, c.says) ||
			!strings.Contains(says, file) {
			t.Errorf("%s: status %d, %q; want %q of %s", name, status, says, c.says, file)
		}
	}
	if list := must(t, dir, "schedule", "list"); strings.Contains(list, "x") {
		t.Errorf("a refused file left a schedule:\n%s", list)
	}
	for _, args := range [][]string{
		{"schedule", "import", "--file", "a.csv"},
		{"schedule", "import", "--name", "x", "--file", "a.txt"},
		{"schedule", "import", "--name", "x", "--file", "a.json", "--k", "4"},
		{"schedule", "export", "--schedule", "edm", "--out", "a.txt"},
	} {
		if status, _, says := call(t, args...); status != 2 {
			t.Errorf("%v: status %d, %q", args, status, says)
		}
	}
}
