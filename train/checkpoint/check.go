package checkpoint

import (
	"errors"
	"path/filepath"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// CheckModel reads the model folder dir and returns every *[Error] in it, where
// [LoadModel] stops at the first. The network is nil where its configuration is among
// them; its weights are then not looked at. One tensor is in memory at a time.
func CheckModel(dir string) (kernels.Architecture, []error) {
	var m *Model
	var faults []error
	err := atomicdir.Read(dir, func(folder *atomicdir.Stored) error {
		m, faults = &Model{}, nil
		faults = appendFault(faults, m.configPart().read(folder))
		if m.Net != nil {
			_, wrong := scanWeights(folder, m.Net, func(int, []float32) {})
			faults = append(faults, wrong...)
		}
		for _, f := range m.scheduleParts() {
			faults = appendFault(faults, f.read(folder))
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
