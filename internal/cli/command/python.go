package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Python runs `python -m MODULE ARGS` with the input and output of this program. An interrupt is passed on. The module
// says itself what is wrong: its exit status becomes this program's.
func Python(ctx context.Context, e Env, module string, args ...string) error {
	program, err := findPython(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-m", module}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Cmd.InOrStdin(), e.Out, e.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second // then it is killed
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ErrInterrupted
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return ExitError(exit.ExitCode())
	}
	return fmt.Errorf("%s: %w", cmd.Path, err)
}

// findPython returns the first interpreter that has the package anisoflight. ANISOFLIGHT_PYTHON excludes all others.
func findPython(ctx context.Context) (string, error) {
	const install = "install it with `pip install anisoflight`, or in the repository with `make build`; " +
		"ANISOFLIGHT_PYTHON names another interpreter"
	if given := os.Getenv("ANISOFLIGHT_PYTHON"); given != "" {
		if err := hasPackage(ctx, given); err != nil {
			return "", fmt.Errorf("ANISOFLIGHT_PYTHON is %s: %w; %s", given, err, install)
		}
		return given, nil
	}
	var tried []string
	for _, program := range interpreters() {
		err := hasPackage(ctx, program)
		switch {
		case err == nil:
			return program, nil
		case ctx.Err() != nil:
			return "", ctx.Err()
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, exec.ErrNotFound):
			tried = append(tried, fmt.Sprintf("%s: %v", program, err))
		}
	}
	if tried == nil {
		return "", fmt.Errorf("this command needs Python and its package anisoflight, and there is no python3; %s", install)
	}
	return "", fmt.Errorf("this command needs the Python package anisoflight (%s); %s", strings.Join(tried, "; "), install)
}

// interpreters lists where an interpreter may be: the project's .venv, beside the program or above the working folder,
// the active environment, the PATH.
func interpreters() []string {
	var found []string
	inside := func(environment string) {
		found = append(found, filepath.Join(environment, "bin", "python"))
	}
	if program, err := os.Executable(); err == nil {
		folder := filepath.Dir(program)
		inside(filepath.Join(folder, ".venv"))
		inside(filepath.Join(filepath.Dir(folder), ".venv"))
	}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			inside(filepath.Join(dir, ".venv"))
		}
	}
	if environment := os.Getenv("VIRTUAL_ENV"); environment != "" {
		inside(environment)
	}
	return append(found, "python3")
}

// hasPackage returns an error unless the interpreter runs and finds the package.
func hasPackage(ctx context.Context, program string) error {
	const check = "import importlib.util, sys; sys.exit(importlib.util.find_spec('anisoflight') is None)"
	err := exec.CommandContext(ctx, program, "-c", check).Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errors.New("it does not have the package anisoflight")
	}
	return err
}
