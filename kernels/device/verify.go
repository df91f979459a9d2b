package device

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// vet says whether a plugin may be loaded into this process. In order of price:
// it is a whole shared library for this machine that exports GetPjrtApi; the
// pinned wheel's file has the pinned checksum; any other file, and the pinned one
// under the user's own XLA_FLAGS, has been tried in a child process. The last two
// are remembered between processes (see verdicts).
func vet(path string, kind Kind, cfg Config) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &PluginError{Path: path, Reason: "there is no such file"}
	case err != nil:
		return &PluginError{Path: path, Reason: "it cannot be read", Err: err}
	case !info.Mode().IsRegular():
		return &PluginError{Path: path, Reason: "it is not a regular file; give the shared library itself"}
	}
	if err := wholeELF(path, info.Size()); err != nil {
		return &PluginError{Path: path, Reason: "it is not a usable shared library", Err: err}
	}
	known := openVerdicts()
	if pinned.isAt(path) {
		if err := pinned.check(path, info, known); err != nil {
			return err
		}
		if os.Getenv("XLA_FLAGS") == "" {
			return nil
		}
	}
	return probe(path, kind, cfg, info, known)
}

// wholeELF checks what the dynamic loader takes on trust. It maps segments
// without looking at the file's length, and reading a page behind the end kills
// the process.
func wholeELF(path string, size int64) (err error) {
	defer func() {
		if r := recover(); r != nil { // debug/elf promises no defence against hostile files
			err = fmt.Errorf("damaged ELF headers: %v", r)
		}
	}()
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("not an ELF library, or cut short: %w", err)
	}
	defer f.Close()
	if f.Type != elf.ET_DYN {
		return fmt.Errorf("ELF file is %v, not a shared library", f.Type)
	}
	if m, ok := machines[runtime.GOARCH]; ok && f.Machine != m {
		return fmt.Errorf("built for %v, this process is %s", f.Machine, runtime.GOARCH)
	}
	for _, p := range f.Progs {
		if p.Filesz > 0 && (p.Off > uint64(size) || p.Filesz > uint64(size)-p.Off) {
			return fmt.Errorf("cut short: a segment ends at byte %d of %d", p.Off+p.Filesz, size)
		}
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL && (s.Offset > uint64(size) ||
			s.FileSize > uint64(size)-s.Offset) {
			return fmt.Errorf("cut short: section %s ends at byte %d of %d", s.Name, s.Offset+s.FileSize, size)
		}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("no table of exported symbols: %w", err)
	}
	if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
		return s.Name == "GetPjrtApi" && s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC
	}) {
		return errors.New("it does not export GetPjrtApi, so it is no PJRT plugin")
	}
	return nil
}

var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64,
	"arm64": elf.EM_AARCH64,
}

// pin is a plugin whose bytes are known.
type pin struct {
	wheel, folder, file string
	size                int64
	sha256              string
}

// pinned is the plugin of the wheel that `make build` installs: XLA for CPU, PJRT
// API 0.106, Linux on amd64.
var pinned = pin{
	wheel:  "fastatomstruct-xla-cpu==2026.6.23",
	folder: "fastatomstruct_xla_cpu",
	file:   "libpjrt_cpu.so",
	size:   273768800,
	sha256: "0a0fe56ca17be9efc7b942e89e534e5e0ad4a0f1e369b66d27b62184509015b9",
}

func (p pin) isAt(path string) bool {
	return filepath.Base(path) == p.file && filepath.Base(filepath.Dir(path)) == p.folder
}

// check compares the file with the pin. Reading 270 MB takes the better part of a
// second, so the verdict is remembered until the file changes.
func (p pin) check(path string, info fs.FileInfo, known *verdicts) error {
	wrong := func(what string) error {
		return &PluginError{Path: path, Reason: fmt.Sprintf("%s; reinstall it with `pip install --force-reinstall %s`", what,
			p.wheel)}
	}
	if info.Size() != p.size {
		return wrong(fmt.Sprintf("it has %d bytes, the pinned wheel's has %d", info.Size(), p.size))
	}
	key := verdictKey("sha256", path, info, p.sha256)
	if known.good(key) {
		return nil
	}
	sum, err := sumOf(path)
	if err != nil {
		return &PluginError{Path: path, Reason: "it cannot be read", Err: err}
	}
	if sum != p.sha256 {
		return wrong("its checksum is not the pinned one")
	}
	known.remember(key)
	return nil
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, f, make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

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
