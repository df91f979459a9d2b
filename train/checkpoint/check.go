package checkpoint

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// CheckModel reads the model folder dir and returns every *[Error] in it, where
// [LoadModel] stops at the first. The network is nil where its configuration is among
// them; its weights are then not looked at. One tensor is in memory at a time.
func CheckModel(dir string) (kernels.Architecture, []error) {
	var m *Model
	var faults []error
	err := atomicdir.Read(dir, func(folder *atomicdir.Stored) error {
		m, faults = &Model{}, nil
		for _, f := range m.files() {
			switch {
			case f.name == weightsFile && m.Net == nil:
			case f.name == weightsFile:
				faults = append(faults, checkWeights(m.Net, folder)...)
			default:
				faults = appendFault(faults, f.read(folder))
			}
		}
		return errors.Join(faults...)
	})
	if m == nil {
		return nil, []error{inFile(filepath.Base(dir), withoutPath(err))}
	}
	return m.Net, faults
}

func appendFault(faults []error, err error) []error {
	if err != nil {
		faults = append(faults, err)
	}
	return faults
}

// checkWeights compares the weights of a folder with what was written, and with a network.
func checkWeights(net kernels.Architecture, folder *atomicdir.Stored) []error {
	if err := folder.Check(context.Background(), weightsFile); err != nil {
		return []error{inFile(weightsFile, withoutPath(err))}
	}
	var faults []error
	check := net.Check()
	for t, err := range safetensors.Scan(folder.Path(weightsFile)) {
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
