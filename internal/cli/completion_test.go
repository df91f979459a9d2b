package cli

import (
	"slices"
	"strings"
	"testing"
)

// completions returns what a shell would offer after these words, the last of which is being typed.
func completions(t *testing.T, words ...string) []string {
	t.Helper()
	status, out, stderr := call(t, append([]string{"__complete"}, words...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || !strings.HasPrefix(lines[len(lines)-1], ":") {
		t.Fatalf("__complete %q: status %d, %q, %s", words, status, out, stderr)
	}
	return lines[:len(lines)-1]
}

// Names come from the data folder, or the server; words from what a value may be.
func TestCompletion(t *testing.T) {
	dir := folder(t)
	importTwo(t, "two", "--data", dir)
	must(t, dir, "model", "mixture", "--name", "bars-gmm", "--dataset", "bars")
	s := startServer(t, folder(t))
	defer s.stop()
	for line, want := range map[string][]string{
		"sch":                                  {"schedule\tList, show, make, export and import noise schedules"},
		"schedule show --data DIR --sch":       nil, // below
		"sample --data DIR --model ":           {"bars-gmm"},
		"sample --data DIR --model x":          nil,
		"train --data DIR --dataset ":          {"bars"},
		"schedule show --data DIR --schedule ": {"edm", "bars-gmm", "two"},
		"compare --data DIR --schedules edm,":  {"edm,own", "edm,edm", "edm,bars-gmm", "edm,two"},
		"sample --data nowhere --model ":       nil,
		"train --server AT --dataset ":         {"bars"},
		"sample --solver dpmpp":                {"dpmpp2m", "dpmpp3m", "dpmpp3m_taylor"},
		"sample --grid e":                      {"edm"},
		"compare --solvers heun,ipndm":         {"heun,ipndm", "heun,ipndm_v"},
		"train --stage i":                      {"isotropic"},
		"config train --stage a":               {"anisotropic"},
		"sample --log-level ":                  {"debug", "info", "warn", "error"},
		"sample --steps ":                      nil,
	} {
		if strings.HasSuffix(line, "--sch") {
			want = []string{"--schedule\ta schedule's or model's name, edm, or JSON such as {\"edm\":{\"T\":400}} (required)"}
		}
		words := strings.Split(strings.NewReplacer("DIR", dir, "AT", s.location).Replace(line), " ")
		if got := completions(t, words...); !slices.Equal(got, want) {
			t.Errorf("after %q are offered %q, want %q", line, got, want)
		}
	}
}
