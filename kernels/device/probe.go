package device

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// A library that nobody has pinned can do anything when it is loaded: crash in a
// constructor, abort on a flag of XLA_FLAGS that it does not know, return a null
// table. So it is loaded into a child process first, which also starts its client.
// The child is this same executable: with probeEnv set, init below does the work
// and exits before main (or a test) begins.
const probeEnv = "ANISOFLIGHT_INTERNAL_PROBE_PLUGIN"

// probeIndexEnv holds the GPU that the child is to start its client on.
const probeIndexEnv = "ANISOFLIGHT_INTERNAL_PROBE_INDEX"

const probeTimeout = 60 * time.Second

// probeResult is what the child prints on its standard output.
type probeResult struct {
	Error string
}

func init() {
	path := os.Getenv(probeEnv)
	if path == "" {
		return
	}
	var r probeResult
	index, err := strconv.Atoi(os.Getenv(probeIndexEnv))
	var o opened
	if err == nil {
		o, err = openXLA(path, kindOf(path), Config{Index: index}.withDefaults(os.Getenv))
	}
	switch {
	case err != nil:
		r.Error = err.Error()
	case o.backend.NumDevices() == 0:
		r.Error = "it shows no device"
	}
	if json.NewEncoder(os.Stdout).Encode(r) != nil {
		os.Exit(1)
	}
	os.Exit(0) // without waiting for the plugin's threads
}

// probe tries a plugin in a child process.
func probe(path string, kind Kind, cfg Config, info fs.FileInfo, known *verdicts) error {
	if !shim.Available {
		return nil // the attempt to load it will say why
	}
	// Whether a GPU's client starts depends on the driver and on other processes too.
	key := verdictKey("probe", path, info, os.Getenv("XLA_FLAGS"))
	if kind == CPU && known.good(key) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return &PluginError{Path: path, Reason: "it cannot be tried in a child process", Err: err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), probeEnv+"="+path, probeIndexEnv+"="+strconv.Itoa(cfg.Index))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	runErr := cmd.Run()

	var r probeResult
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &PluginError{Path: path, Reason: fmt.Sprintf("it did not start within %v in a child process", probeTimeout)}
	case runErr != nil:
		return &PluginError{Path: path, Reason: "it kills the process that loads it" + lastLine(stderr.String()), Err: runErr}
	case json.Unmarshal(stdout.Bytes(), &r) != nil:
		return &PluginError{Path: path, Reason: "the child process that tried it gave no answer" + lastLine(stderr.String())}
	case r.Error != "":
		return &PluginError{Path: path, Reason: r.Error}
	}
	known.remember(key)
	return nil
}

// lastLine quotes the line with which a dying library usually says why.
func lastLine(s string) string {
	const keep = 300
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for _, line := range lines {
		if line = strings.TrimSpace(line); strings.Contains(line, "Unknown flag") || strings.HasPrefix(line, "F") {
			return " (" + line[:min(len(line), keep)] + ")"
		}
	}
	if line := lines[0]; line != "" {
		return " (" + line[:min(len(line), keep)] + ")"
	}
	return ""
}
