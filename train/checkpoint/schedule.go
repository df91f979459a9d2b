package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Schedule is a schedule with what travels with it.
type Schedule struct {
	*schedule.Schedule
	Basis *basis.Basis // dense basis that it is on; nil where the family's name says it all
	Start *start.Start // law of the data that sampling starts from; nil for noise alone
	// Statistics are those of a denoiser, for the solver local; nil where there are none.
	Statistics *local.Statistics
	// Fitted are coefficients of the solver fitted, in the coordinates of Statistics; nil for none.
	Fitted *solver.Fitted
}

// SaveSchedule writes a schedule and what travels with it as the folder dir, in place of
// what is there, which appears whole or not at all.
func SaveSchedule(dir string, s Schedule) error {
	files := map[string][]byte{}
	if err := addSchedule(files, s.Schedule, s.Basis); err != nil {
		return err
	}
	err := errors.Join(StartFile.add(files, s.Start), StatisticsFile.add(files, s.Statistics),
		FittedFile.add(files, s.Fitted))
	if err != nil {
		return err
	}
	return writeFolder(dir, files, true)
}

// LoadSchedule reads what SaveSchedule wrote. What is missing or cannot be used is an
// *[Error].
func LoadSchedule(dir string) (Schedule, error) {
	return readFolder(dir, func(folder *atomicdir.Stored) (s Schedule, err error) {
		err = readParts(folder, []part{
			schedulePart(&s.Schedule, false),
			basisPart(basisFile, &s.Basis, true),
			StartFile.part(&s.Start),
			StatisticsFile.part(&s.Statistics),
			FittedFile.part(&s.Fitted),
		})
		return s, err
	})
}

func schedulePart(s **schedule.Schedule, optional bool) part {
	return part{scheduleFile, optional, func(b []byte) (err error) { *s, err = decodeSchedule(b); return err }}
}

// DecodeSchedule reads a schedule's file. What cannot be used is an *[Error].
func DecodeSchedule(b []byte) (*schedule.Schedule, error) {
	s, err := decodeSchedule(b)
	return s, inFile(scheduleFile, err)
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
