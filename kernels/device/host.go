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
paths = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
paths += [*site.getsitepackages(), site.getusersitepackages()]
print(*dict.fromkeys(paths), sep="\n")`
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

// cudaDataDirs are the folders beside a wheel's plugin, from site-packages, that
// hold CUDA's device library (nvvm/libdevice) and assembler for XLA's compiler.
var cudaDataDirs = []string{"nvidia/cu13", "nvidia/cuda_nvcc", "nvidia/cu12"}

// pointXLAToCUDA tells XLA where the CUDA wheels beside the plugin have put what
// its compiler needs; XLA itself searches /usr/local/cuda and the working
// directory. The user's own flag stands.
//
// The plugin lies in site-packages/jax_plugins/xla_cudaNN/. XLA reads XLA_FLAGS
// once, when the first client starts.
func pointXLAToCUDA(plugin string) {
	const flag = "--xla_gpu_cuda_data_dir="
	given := os.Getenv("XLA_FLAGS")
	if strings.Contains(given, flag) {
		return
	}
	site := filepath.Dir(filepath.Dir(filepath.Dir(plugin)))
	for _, dir := range cudaDataDirs {
		dir = filepath.Join(site, dir)
		if strings.ContainsAny(dir, " \t\n") { // XLA_FLAGS has no quoting to rely on
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, "nvvm", "libdevice")); err == nil && info.IsDir() {
			_ = os.Setenv("XLA_FLAGS", strings.TrimSpace(given+" "+flag+dir))
			return
		}
	}
}
