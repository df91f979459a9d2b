package jsonerror

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func TestText(t *testing.T) {
	var dst struct {
		Name  string    `json:"name"`
		Count int       `json:"count"`
		Scale []float64 `json:"scale"`
		Units struct {
			Kind *string `json:"kind"`
		} `json:"units"`
	}
	for in, want := range map[string]string{
		`{"name":3}`:            "file: name must be text, got number",
		`{"count":1.5}`:         "file: count must be a whole number, got number",
		`{"scale":[true]}`:      "file: scale must be a number, got bool",
		`{"units":[]}`:          "file: units must be an object, got array",
		`{"units":{"kind":[]}}`: "file: units.kind must be text, got array",
		`3`:                     "file: it must be an object, got number",
	} {
		if got := Text(fmt.Errorf("file: %w", json.Unmarshal([]byte(in), &dst))); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if got := Text(errors.New("anything else")); got != "anything else" {
		t.Error(got)
	}
}
