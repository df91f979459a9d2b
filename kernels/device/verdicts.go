package device

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

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
