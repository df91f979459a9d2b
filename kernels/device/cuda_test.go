package device

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCUDAFlags(t *testing.T) {
	root := tree(t, site+cudaSO, site+"nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc", site+"nvidia/cu13/include/cuda.h")
	plugin, dir := filepath.Join(root, site, cudaSO), filepath.Join(root, site, "nvidia/cuda_nvcc")
	const round = "--xla_allow_excess_precision=false"
	for _, c := range []struct{ name, plugin, before, after string }{
		{"found beside the plugin", plugin, "", round + " --xla_gpu_cuda_data_dir=" + dir},
		{"added to other flags", plugin, "--xla_dump_to=x", "--xla_dump_to=x " + round + " --xla_gpu_cuda_data_dir=" + dir},
		{
			"the user's own stands", plugin, "--xla_gpu_cuda_data_dir=/mine --xla_allow_excess_precision=true",
			"--xla_gpu_cuda_data_dir=/mine --xla_allow_excess_precision=true",
		},
		{"nothing beside the plugin", filepath.Join(t.TempDir(), "a/b/xla_cuda_plugin.so"), "", round},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("XLA_FLAGS", c.before)
			setCUDAFlags(c.plugin)
			if got := os.Getenv("XLA_FLAGS"); got != c.after {
				t.Errorf("XLA_FLAGS is %q, want %q", got, c.after)
			}
		})
	}
}

// TestTheCacheKnowsTheVersionsOfCUDA: a program was tuned for one driver and one cuDNN.
func TestTheCacheKnowsTheVersionsOfCUDA(t *testing.T) {
	root := tree(t, site+cudaSO, site+"nvidia_cudnn_cu13-9.12.0.dist-info/RECORD", site+"numpy-2.4.6.dist-info/RECORD",
		"proc/driver/nvidia/version")
	driver := filepath.Join(root, "proc/driver/nvidia/version")
	if err := os.WriteFile(driver, []byte("NVRM version: 580.65.06\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := cudaVersions(filepath.Join(root, site, cudaSO), filepath.Join(root, "proc"))
	if want := "NVRM version: 580.65.06\nnvidia_cudnn_cu13-9.12.0.dist-info"; got != want {
		t.Errorf("versions are %q, want %q", got, want)
	}
	if got := cudaVersions(filepath.Join(root, "lib/plugin.so"), root); got != "" {
		t.Errorf("versions without CUDA are %q", got)
	}
}
