package device

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gomlx/gomlx/backends"

	"github.com/anisoflight/anisoflight/kernels/device/internal/diskcache"
)

// programCacheBytes bounds the cache of compiled programs on disk.
const programCacheBytes = 1 << 30

// programDir is the folder of compiled programs; empty if they are not kept.
func (c Config) programDir() string {
	switch c.ProgramCache {
	case "off":
		return ""
	case "":
		return userCache("programs")
	}
	if dir, err := filepath.Abs(c.ProgramCache); err == nil {
		return dir
	}
	return ""
}

// programCache opens the cache for a plugin's programs; nil if they are not kept.
// What a compiled program depends on beside its text and options: the compiler and
// its flags, the processor, whose instructions it uses, and the threads that it
// divides loops among.
func programCache(path string, b backends.Backend, cfg Config) *diskcache.Store {
	dir := cfg.programDir()
	info, err := os.Stat(path)
	if dir == "" || err != nil {
		return nil
	}
	key := []string{
		verdictKey("programs", path, info),
		os.Getenv("XLA_FLAGS"),
		fmt.Sprint(b.DeviceDescription(0)),
		runtime.GOARCH, fmt.Sprint("threads ", max(threads(), cfg.hostDevices())), processor(),
	}
	return diskcache.Open(dir, programCacheBytes, key...)
}

// processor reports what instructions the processor has, as Linux describes it.
func processor() string {
	file, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(file), "\n\n")
	var lines []string
	for line := range strings.Lines(first) {
		switch name, _, _ := strings.Cut(line, ":"); strings.TrimSpace(name) {
		case "vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part":
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
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
