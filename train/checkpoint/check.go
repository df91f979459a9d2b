package checkpoint

import (
	"path/filepath"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// CheckModel reads the model folder dir and returns every *[Error] in it, where
// [LoadModel] stops at the first. The network is nil where its configuration is among
// them; its weights are then not looked at. One tensor is in memory at a time.
func CheckModel(dir string) (kernels.Architecture, []error) {
	m := &Model{}
	var faults []error
	for _, f := range m.files() {
		switch {
		case f.name == weightsFile && m.Net == nil:
		case f.name == weightsFile:
			faults = append(faults, checkWeights(m.Net, filepath.Join(dir, weightsFile))...)
		default:
			if err := f.read(dir); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return m.Net, faults
}

// checkWeights compares the weights at path with a network.
func checkWeights(net kernels.Architecture, path string) []error {
	var faults []error
	check := net.Check()
	for t, err := range safetensors.Scan(path) {
		if err != nil {
			return []error{inFile(weightsFile, withoutPath(err))} // the file is broken: what is missing says nothing
		}
		state, err := tensorOf(&t)
		if err != nil {
			faults = append(faults, err)
			check.Skip(t.Name)
			continue
		}
		check.Add(state)
	}
	for _, fault := range check.Faults() {
		faults = append(faults, inFile(weightsFile, fault))
	}
	return faults
}
