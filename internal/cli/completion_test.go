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

func TestCompletion(t *testing.T) {
	for line, want := range map[string][]string{
		"sch": {"schedule\tList, show and make noise schedules"},
		"schedule show --sch": {
			"--schedule\ta schedule's or model's name, edm, or JSON such as {\"edm\":{\"T\":400}} (required)",
		},
		"sample --model ":                   nil,
		"sample --solver dpmpp":             {"dpmpp2m", "dpmpp3m", "dpmpp3m_taylor"},
		"sample --grid e":                   {"edm"},
		"schedule few --solvers heun,ipndm": {"heun,ipndm", "heun,ipndm_v"},
		"train --stage i":                   {"isotropic"},
		"sample --log-level ":               {"debug", "info", "warn", "error"},
		"sample --steps ":                   nil,
	} {
		if got := completions(t, strings.Split(line, " ")...); !slices.Equal(got, want) {
			t.Errorf("after %q are offered %q, want %q", line, got, want)
		}
	}
}
