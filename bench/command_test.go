package bench

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Wrong usage ends with status 2, a measurement that fails with 1, and both say what is allowed.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"estimator --batch 0", 2, "must be a positive whole number"},
		{"model --speed 3", 2, "--speed"},
		{"sample", 2, "sample"},
		{"model more", 2, "more"},
		{"model --network 64x64", 1, "must be digits, 8x8"},
		{"estimator --basis haar", 1, "must be none or dct"},
		{"--help", 0, ""},
	} {
		var out, errs bytes.Buffer
		got := Main(strings.Fields(c.args), nil, &out, &errs)
		if got != c.status || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: status %d, %s", c.args, got, errs.String())
		}
	}
}

// Every benchmark has a table and JSON.
func TestReports(t *testing.T) {
	args := []string{
		"model", "--network", smallest, "--device", "go", "--batch", "2", "--programs", "forward", "--repeats", "1",
	}
	var table, raw, errs bytes.Buffer
	if Main(args, nil, &table, &errs) != 0 || Main(append(args, "--json"), nil, &raw, &errs) != 0 {
		t.Fatal(errs.String())
	}
	var r modelReport
	if err := json.Unmarshal(raw.Bytes(), &r); err != nil || len(r.Rows) != 1 || r.Rows[0].Program != "forward" {
		t.Errorf("%+v, %v", r, err)
	}
	if !strings.Contains(table.String(), "PROGRAM") || !strings.Contains(table.String(), "forward") {
		t.Error(table.String())
	}
}
