package api

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/anisoflight/anisoflight/internal/testing/alloctest"
)

// TestHostileJSONCostsWhatItWeighs: reading a request takes at most maxCost bytes of memory for each of its own,
// whatever its keys and its depth. Paths, which only errors need, were once put together for every value: a key of
// 150 KB before 75,000 numbers took 11 GB.
func TestHostileJSONCostsWhatItWeighs(t *testing.T) {
	const maxCost = 128
	long := strings.Repeat("k", 150_000)
	numbers := "[0" + strings.Repeat(",0", 75_000) + "]"
	for name, body := range map[string]string{
		"a long key over many numbers": `{"` + long + `":` + numbers + `}`,
		"long keys within each other":  strings.Repeat(`{"`+long[:10_000]+`":`, 30) + numbers + strings.Repeat("}", 30),
		"many empty lists":             "[[]" + strings.Repeat(",[]", 100_000) + "]",
		"many fields":                  `{"a":` + "[{}" + strings.Repeat(`,{}`, 100_000) + "]}",
		"an unknown field":             `{"` + long + `":1}`,
		"a field given twice":          `{"` + long + `":1,"` + long + `":1}`,
		"a text where none belongs":    `{"name":["` + long + `"]}`,
		"a wrong number at the end":    `{"means":[[` + strings.Repeat("0,", 100_000) + `"x"]]}`,
	} {
		if got, most := alloctest.Bytes(func() { _ = decode([]byte(body), new(MakeModel)) }),
			uint64(maxCost*len(body)); got > most {
			t.Errorf("%s: %d bytes took %d, at most %d", name, len(body), got, most)
		}
	}
}

// TestErrorsQuoteLittle: what was sent is cut to 80 characters wherever an error shows it, and the whole text stays far
// below what gRPC's clients take.
func TestErrorsQuoteLittle(t *testing.T) {
	long := strings.Repeat("ü\n", 100_000)
	for name, e := range map[string]*Error{
		"quoted":          Errorf(ModelNotFound, "No model is called %q", long),
		"quoted by fmt":   Errorf(BadRequest, "%w", Errorf(BadRequest, "basis %q is unknown", long)),
		"a list":          Errorf(BadRequest, "The path %q is not one of ListFlights", strings.Fields(long)),
		"not quoted":      Errorf(BadRequest, "cuts must increase from 1 on, got %v", make([]int, 100_000)),
		"in a hint":       Errorf(BadRequest, "No").WithHint("There are: %s.", long),
		"quoted in hints": Errorf(BadRequest, "No").WithHint("There is %q.", long),
	} {
		text := e.Error()
		if n := utf8.RuneCountInString(text); n > 2100 || !utf8.ValidString(text) {
			t.Errorf("%s: %d characters: %.200s", name, n, text)
		}
		if strings.Contains(name, "quoted") && name != "not quoted" {
			if n := strings.Count(text, "ü"); n < 20 || n > mostQuoted {
				t.Errorf("%s: %d letters of what was sent: %s", name, n, text)
			}
		}
	}
	const short = `No model is called "some-name", nor "another"`
	if e := Errorf(ModelNotFound, "%s", short); e.Message != short {
		t.Errorf("%q became %q", short, e.Message)
	}
	for body, want := range map[string]string{
		`{"means":[[0],[0,"x"]]}`:                `means[1][1] must be a number, got "x"`,
		`{"means":[[0],[0,{"a":1}]]}`:            "means[1][1] must be a number, got an object",
		`{"a b":{"c":1,"c":2}}`:                  `"a b.c" is given twice`,
		`{"` + strings.Repeat("k", 200) + `":1}`: `"` + strings.Repeat("k", 80) + `…" is not a field here`,
	} {
		if err := decode([]byte(body), new(MakeModel)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", body, err, want)
		}
	}
}
