package main

import (
	"os"
	"path/filepath"
	"testing"
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
	for comment, want := range map[string]field{
		"number of knots; default 32\n":                      {help: "number of knots", deflt: "32"},
		"name of the\nmodel; required":                       {help: "name of the model", required: true},
		"Bounds it. 0 is no bound.\nDefault, as in EDM: 0.5": {help: "Bounds it. 0 is no bound. Default, as in EDM: 0.5"},
		"Precision of products. Default: the server's.":      {help: "Precision of products", deflt: "the server's"},
		"default 1: none":                                    {deflt: "1: none"},
	} {
		var got field
		if got.describe(comment); got.help != want.help || got.deflt != want.deflt || got.required != want.required {
			t.Errorf("%q: %+v, want %+v", comment, got, want)
		}
	}
}
