package startbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/anisoflight/anisoflight/internal/stat"
)

// Config says what to measure.
type Config struct {
	Programs []string // of modelbench
	Rounds   int
	// Command gives the arguments with which this executable calls Once for a program.
	Command  func(program string) []string
	Progress func(done, total int)
}

// Report is what Run measured.
type Report struct {
	Device string `json:"device"`
	Rounds int    `json:"rounds"`
	Rows   []Row  `json:"rows"`
}

// Row compares first starts, with an empty cache, and second ones. Ratios are first over second, within a round.
type Row struct {
	Program   string    `json:"program"`
	First     stat.Stat `json:"first_s"`  // from the start of the process to the first result
	Second    stat.Stat `json:"second_s"` // the same
	Start     stat.Stat `json:"start_ratio"`
	Compile   stat.Stat `json:"compile_s"` // to make the executables ready, at first
	Load      stat.Stat `json:"load_s"`    // the same, from the cache
	Ready     stat.Stat `json:"ready_ratio"`
	Identical bool      `json:"identical"` // every start has computed the same bits
}

// Run starts processes, first and second ones in turn, each first one with a folder of its own.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &Report{Rounds: cfg.Rounds}
	total := len(cfg.Programs) * cfg.Rounds
	for i, program := range cfg.Programs {
		var s series
		for round := range cfg.Rounds {
			cfg.Progress(i*cfg.Rounds+round, total)
			if err := s.round(ctx, exe, cfg.Command(program)); err != nil {
				return nil, fmt.Errorf("%s: %w", program, err)
			}
		}
		r.Device = s.device
		r.Rows = append(r.Rows, s.sum(program))
	}
	cfg.Progress(total, total)
	return r, nil
}

// series holds what every round of one program gave.
type series struct {
	device                       string
	first, second, compile, load []float64
	digests                      map[string]bool
}

func (s *series) round(ctx context.Context, exe string, args []string) (err error) {
	dir, err := os.MkdirTemp("", "anisoflight-programs")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, again := range []bool{false, true} {
		took, told, err := launch(ctx, exe, args, dir)
		if err != nil {
			return err
		}
		if told.FromDisk != again {
			return fmt.Errorf("start again: %v, program from disk: %v; does the device keep programs?", again, told.FromDisk)
		}
		if again {
			s.second, s.load = append(s.second, took), append(s.load, told.Compile)
		} else {
			s.first, s.compile = append(s.first, took), append(s.compile, told.Compile)
		}
		if s.digests == nil {
			s.digests = map[string]bool{}
		}
		s.device, s.digests[told.Digest] = told.Device, true
	}
	return nil
}

func (s *series) sum(program string) Row {
	return Row{Program: program, First: stat.Of(s.first), Second: stat.Of(s.second), Start: stat.Of(stat.Ratios(s.first, s.second)),
		Compile: stat.Of(s.compile), Load: stat.Of(s.load), Ready: stat.Of(stat.Ratios(s.compile, s.load)), Identical: len(s.digests) == 1}
}

// launch starts a process whose programs are kept in dir, and gives the seconds to its first result and what it tells.
func launch(ctx context.Context, exe string, args []string, dir string) (took float64, told start, err error) {
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), "ANISOFLIGHT_PROGRAM_CACHE="+dir)
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, told, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, told, err
	}
	lines := json.NewDecoder(out)
	err = lines.Decode(&told)
	took = time.Since(began).Seconds()
	if err == nil {
		err = lines.Decode(&told)
	}
	if ended := cmd.Wait(); ended != nil {
		return 0, told, fmt.Errorf("%w: %s", ended, bytes.TrimSpace(wrong.Bytes()))
	}
	return took, told, err
}
