package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// Python runs `python -m MODULE ARGS` with the input and output of this program. An interrupt is passed on. If the
// module fails, it has printed its error, and the returned [ExitError] has its exit status.
func Python(cmd *cobra.Command, module string, args ...string) error {
	ctx := cmd.Context()
	python := exec.CommandContext(ctx, interpreter(), append([]string{"-m", module}, args...)...)
	python.Stdin, python.Stdout, python.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	python.Cancel = func() error { return python.Process.Signal(os.Interrupt) }
	python.WaitDelay = 10 * time.Second // then it is killed
	err := python.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ErrInterrupted
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return ExitError(exit.ExitCode())
	}
	return fmt.Errorf("this command needs Python and its package anisoflight (`pip install anisoflight`): %w", err)
}

// interpreter returns ANISOFLIGHT_PYTHON, else the first Python in a folder .venv: next to this program, one folder
// above it, or in the working folder and those above it; else python3 of the PATH.
func interpreter() string {
	if given := os.Getenv("ANISOFLIGHT_PYTHON"); given != "" {
		return given
	}
	var candidates []string
	if program, err := os.Executable(); err == nil {
		folder := filepath.Dir(program)
		candidates = append(candidates, filepath.Join(folder, ".venv/bin/python"),
			filepath.Join(filepath.Dir(folder), ".venv/bin/python"))
	}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			candidates = append(candidates, filepath.Join(dir, ".venv/bin/python"))
		}
	}
	if i := slices.IndexFunc(candidates, Exists); i >= 0 {
		return candidates[i]
	}
	return "python3"
}
