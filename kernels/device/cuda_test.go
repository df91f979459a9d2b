package device

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPointXLAToCUDA(t *testing.T) {
	root := tree(t, site+cudaSO, site+"nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc", site+"nvidia/cu13/include/cuda.h")
	plugin, dir := filepath.Join(root, site, cudaSO), filepath.Join(root, site, "nvidia/cuda_nvcc")
	for _, c := range []struct{ name, plugin, before, after string }{
		{"found beside the plugin", plugin, "", "--xla_gpu_cuda_data_dir=" + dir},
		{"added to other flags", plugin, "--xla_dump_to=x", "--xla_dump_to=x --xla_gpu_cuda_data_dir=" + dir},
		{"the user's own stands", plugin, "--xla_gpu_cuda_data_dir=/mine", "--xla_gpu_cuda_data_dir=/mine"},
		{"nothing beside the plugin", filepath.Join(t.TempDir(), "a/b/xla_cuda_plugin.so"), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("XLA_FLAGS", c.before)
			pointXLAToCUDA(c.plugin)
			if got := os.Getenv("XLA_FLAGS"); got != c.after {
				t.Errorf("XLA_FLAGS is %q, want %q", got, c.after)
			}
		})
	}
}
