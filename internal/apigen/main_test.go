package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// TestNothingDerivedIsStale: what go generate ./flight/api would write is what there is.
func TestNothingDerivedIsStale(t *testing.T) {
	const root = "../.."
	files, err := derive(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		have, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || string(have) != want {
			t.Errorf("%s is stale (%v); run go generate ./flight/api", name, err)
		}
	}
}

// TestDescribe: a comment says what a field is, then its default, or that it is required.
func TestDescribe(t *testing.T) {
	for comment, want := range map[string]api.Field{
		"number of knots; default 32\n":                      {Help: "number of knots", Default: "32"},
		"name of the\nmodel; required":                       {Help: "name of the model", Required: true},
		"Bounds it. 0 is no bound.\nDefault, as in EDM: 0.5": {Help: "Bounds it. 0 is no bound. Default, as in EDM: 0.5"},
		"Precision of products. Default: the server's.":      {Help: "Precision of products", Default: "the server's"},
		"default 1: none":                                    {Default: "1: none"},
	} {
		if got := describe(comment); got.Help != want.Help || got.Default != want.Default || got.Required != want.Required {
			t.Errorf("%q: %+v, want %+v", comment, got, want)
		}
	}
}
