package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// SaveSchedule writes a schedule and the dense basis that it is on as the folder dir,
// in place of what is there, which appears whole or not at all.
func SaveSchedule(dir string, s *schedule.Schedule, b *basis.Basis) error {
	files := map[string][]byte{}
	if err := addSchedule(files, s, b); err != nil {
		return err
	}
	return writeFolder(dir, files, true)
}

// LoadSchedule reads what SaveSchedule wrote. What is missing or cannot be used is an
// *[Error].
func LoadSchedule(dir string) (*schedule.Schedule, *basis.Basis, error) {
	text, err := os.ReadFile(filepath.Join(dir, scheduleFile))
	if err != nil {
		return nil, nil, inFile(scheduleFile, err)
	}
	s, err := decodeSchedule(text)
	if err != nil {
		return nil, nil, inFile(scheduleFile, err)
	}
	vectors, err := os.ReadFile(filepath.Join(dir, basisFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, nil
	}
	if err != nil {
		return nil, nil, inFile(basisFile, err)
	}
	b, err := DecodeBasis(vectors)
	return s, b, err
}

func decodeSchedule(b []byte) (*schedule.Schedule, error) {
	return schedule.Decode(bytes.NewReader(b))
}

// addSchedule adds the files of a schedule and its basis, as far as there are any.
func addSchedule(files map[string][]byte, s *schedule.Schedule, b *basis.Basis) error {
	if s != nil {
		text, err := json.Marshal(s)
		if err != nil {
			return inFile(scheduleFile, err)
		}
		files[scheduleFile] = append(text, '\n')
	}
	if b != nil && b.Kind() == basis.KindDense {
		out, err := EncodeBasis(b)
		if err != nil {
			return inFile(basisFile, err)
		}
		files[basisFile] = out
	}
	return nil
}
