package device

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// host is what the search needs to know of the machine and the process. Tests
// make their own.
type host struct {
	env        func(string) string
	executable string // path of the running binary, symlinks resolved; may be empty
	workDir    string
	gpu        bool
	python     func() []string // the active Python's site-packages; slow
}

func thisHost() host {
	h := host{env: os.Getenv, gpu: nvidiaGPU("/"), python: pythonSitePackages}
	if exe, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(exe); err == nil {
			exe = resolved
		}
		h.executable = exe
	}
	h.workDir, _ = os.Getwd()
	return h
}

// nvidiaGPU looks for a GPU's device file, or for the driver's list of GPUs
// where the device files are made on first use.
func nvidiaGPU(root string) bool {
	for _, pattern := range []string{"dev/nvidia[0-9]*", "proc/driver/nvidia/gpus/*"} {
		if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

// pythonSitePackages asks the first python3 of PATH.
func pythonSitePackages() []string {
	const ask = `import site, sysconfig
print(*dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages(), site.getusersitepackages()]), sep="\n")`
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "-c", ask)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}
