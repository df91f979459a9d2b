package recipe

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestStagesWaitForWhatTheyNeed and for nothing else: the distances of the network do not wait for the schedule.
func TestStagesWaitForWhatTheyNeed(t *testing.T) {
	r, err := Load(filepath.Join("..", "..", "configs", "cifar10", "pca.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	stages := r.Stages(Place{Anisoflight: "anisoflight", Python: "python", Data: "data", Features: "f"})
	needs := map[string][]string{}
	for i, after := range After(stages) {
		var names []string
		for _, j := range after {
			names = append(names, string(stages[j].Kind)+" "+filepath.Base(stages[j].Makes))
		}
		needs[string(stages[i].Kind)+" "+filepath.Base(stages[i].Makes)] = names
	}
	data, network, isotropic := "data cifar10", "network cifar10-edm", "train cifar10-isotropic"
	basis, reference := "basis cifar10-components-per-class", "reference cifar10.npz"
	for stage, want := range map[string][]string{
		data: nil, network: nil, isotropic: {data, network}, basis: {data}, reference: {data},
		"train cifar10-pca": {data, network, isotropic, basis},
		"fid EDM":           {network, reference},
		"fid pca":           {"train cifar10-pca", reference},
		"table .": {
			"fid EDM", "fid EDM ipndm", "fid EDM, uniform in t", "fid pca", "fid pca, EDM's grid",
			"fid pca, EDM's grid, midpoint",
		},
	} {
		if got, ok := needs[stage]; !ok || !slices.Equal(got, want) {
			t.Errorf("%s waits for %v, want %v (of %v)", stage, got, want, needs)
		}
	}
}
