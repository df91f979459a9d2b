package engine

import (
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// What the contract names is what there is.
func TestNamesOfTheContract(t *testing.T) {
	if !slices.Equal(api.Tables, solver.Tables()) {
		t.Errorf("tables %v, the solvers have %v", api.Tables, solver.Tables())
	}
	if !slices.Equal(slices.Sorted(slices.Values(api.Solvers)), slices.Sorted(slices.Values(solver.Names()))) {
		t.Errorf("solvers %v, there are %v", api.Solvers, solver.Names())
	}
}
