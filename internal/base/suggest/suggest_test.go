package suggest

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"heun", "heun", 0},
		{"huen", "heun", 1}, // two letters swapped
		{"heu", "heun", 1},
		{"deun", "heun", 1},
		{"kitten", "sitting", 3},
	} {
		if got, back := distance(c.a, c.b), distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("from %q to %q are %d edits, back %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	solvers := []string{"heun", "euler", "ab", "dpmpp2m", "dpmpp3m"}
	for word, want := range map[string]string{
		"huen":    "heun",
		"HEUN":    "heun",
		"dpmp2m":  "dpmpp2m",
		"dpmpp4m": "dpmpp2m", // as near as dpmpp3m, which comes later
		"abc":     "ab",
		"rk45":    "",
		"":        "",
	} {
		if got := Nearest(word, solvers); got != want {
			t.Errorf("%q was meant to be %q, want %q", word, got, want)
		}
	}
	if got := Nearest(strings.Repeat("heun", 1<<20), solvers); got != "" {
		t.Errorf("4 MiB of letters were meant to be %q", got)
	}
	if got := DidYouMean("huen", solvers); got != `did you mean "heun"?` {
		t.Errorf("asks %q", got)
	}
	if got := DidYouMean("rk45", solvers); got != "" {
		t.Errorf("asks %q where nothing is near", got)
	}
}

func TestOneOf(t *testing.T) {
	allowed := []string{"none", "balanced"}
	for value, want := range map[string]string{
		"none":                  "",
		"balance":               `must be one of none, balanced, got "balance"; did you mean "balanced"?`,
		"full":                  `must be one of none, balanced, got "full"`,
		strings.Repeat("x", 50): `must be one of none, balanced, got "` + strings.Repeat("x", 40) + `…"`,
	} {
		if got := OneOf(value, allowed); got != want {
			t.Errorf("of %q it says %q, want %q", value, got, want)
		}
	}
}
