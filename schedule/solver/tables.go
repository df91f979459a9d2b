package solver

import (
	_ "embed"
	"encoding/json"
	"maps"
	"math"
	"slices"
)

// tables are published noise levels of ten steps, by name: those of Align Your Steps
// (Sabour, Fidler and Kreis, arXiv:2404.14507) for Stable Diffusion 1.5, XL and Video.
var tables = func() (t map[string][]float64) {
	if err := json.Unmarshal(tablesFile, &t); err != nil {
		panic(err) // a broken build
	}
	return t
}()

//go:embed tables.json
var tablesFile []byte

// Tables returns the names of the tables of GridTable.
func Tables() []string { return slices.Sorted(maps.Keys(tables)) }

// tableLevels returns the noise levels of n steps: n+1 uniform in the table's index, between
// its entries log-linear, as published; and the last one 0.
func tableLevels(table []float64, n int) []float64 {
	out := make([]float64, n+1)
	last := len(table) - 1
	for i := range n {
		at := float64(i*last) / float64(n)
		k := min(int(at), last-1)
		part := at - float64(k)
		out[i] = math.Exp((1-part)*math.Log(table[k]) + part*math.Log(table[k+1]))
	}
	return out
}
