package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train"
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

// TestWordsAreThoseBelow: the contract names the words of packages that it does not import.
func TestWordsAreThoseBelow(t *testing.T) {
	for _, lists := range [][2][]string{
		{api.Ramps, train.Ramps}, {api.Modes, kernels.Modes}, {api.Precisions, kernels.Precisions},
	} {
		if !slices.Equal(lists[0], lists[1]) {
			t.Errorf("%v, want %v", lists[0], lists[1])
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
