package device

import (
	"os"
	"path/filepath"
	"strings"
)

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
