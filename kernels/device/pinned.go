package device

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

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
