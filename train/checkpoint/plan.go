package checkpoint

import (
	"slices"

	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// planFile is the JSON of a plan.
const planFile = "plan.json"

// SavePlan writes a plan, and the files of its start and of its basis unless they are nil, as the folder dir. It
// replaces an existing one. The folder appears whole or not at all.
func SavePlan(dir string, plan, law, vectors []byte) error {
	files := map[string][]byte{planFile: append(slices.Clip(plan), '\n')}
	if law != nil {
		files[StartFile.Name()] = law
	}
	if vectors != nil {
		files[BasisFile] = vectors
	}
	return writeFolder(dir, files, true)
}

// LoadPlan is the inverse of SavePlan. It does not look into the files. A file that is missing is an *[Error].
func LoadPlan(dir string) (plan, law, vectors []byte, err error) {
	_, err = readFolder(dir, func(folder *atomicdir.Stored) (struct{}, error) {
		keep := func(into *[]byte) func([]byte) error {
			return func(b []byte) error {
				*into = b
				return nil
			}
		}
		return struct{}{}, readParts(folder, []part{
			{planFile, false, keep(&plan)}, {StartFile.Name(), true, keep(&law)}, {BasisFile, true, keep(&vectors)},
		})
	})
	return plan, law, vectors, err
}
