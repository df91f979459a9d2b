package device

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

// verdicts remembers between processes which checks a plugin file has passed: an
// empty file per verdict in the user's cache folder, named by a hash of all that
// the verdict depends on. A changed file has another name, so nothing expires.
// Without a cache folder every process checks anew.
type verdicts struct{ dir string }

func openVerdicts() *verdicts { return &verdicts{dir: userCache("plugins")} }

// userCache names a folder of ours in the user's cache folder; empty where there is none.
func userCache(name string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "anisoflight", name)
}

// verdictKey names a check of a file in its present state under further conditions.
func verdictKey(check, path string, info fs.FileInfo, conditions ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d %d %q", check, path, info.Size(), info.ModTime().UnixNano(), conditions)
	return hex.EncodeToString(h.Sum(nil))
}

func (v *verdicts) good(key string) bool {
	if v.dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(v.dir, key))
	return err == nil
}

// remember is best effort: a read-only cache folder costs time, nothing else.
func (v *verdicts) remember(key string) {
	if v.dir == "" || os.MkdirAll(v.dir, 0o755) != nil {
		return
	}
	if f, err := os.Create(filepath.Join(v.dir, key)); err == nil {
		f.Close()
	}
}
