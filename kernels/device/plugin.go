package device

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Where wheels put their plugins inside site-packages, better ones first.
var wheels = []string{
	"jax_plugins/xla_cuda13/xla_cuda_plugin.so",
	"jax_plugins/xla_cuda12/xla_cuda_plugin.so",
	"fastatomstruct_xla_cpu/libpjrt_cpu.so", // of the wheel that `make build` installs
	"*/libpjrt_cpu*.so",
	"*/pjrt_c_api_cpu_plugin*.so",
}

// search lists the plugins to try, best first. Those that cannot be used on this machine have a reason. named is true
// if the user chose one file, and then there is no other candidate.
func search(cfg Config, h host) (found []Candidate, named bool) {
	want := cfg.Plugin
	if want != "" && !Kind(want).known() {
		return []Candidate{{Path: absolute(want), Source: cfg.source, Kind: kindOf(want)}}, true
	}
	environment := func(dir, source string) {
		if dir == "" {
			return
		}
		for _, wheel := range wheels {
			files, _ := fs.Glob(os.DirFS(dir), "lib/python3*/site-packages/"+wheel)
			for _, file := range files {
				path := absolute(filepath.Join(dir, file))
				if !slices.ContainsFunc(found, func(c Candidate) bool { return c.Path == path }) {
					found = append(found, Candidate{Path: path, Source: source, Kind: kindOf(path)})
				}
			}
		}
	}
	projects := parents(h.workDir)
	if h.executable != "" {
		home := filepath.Dir(filepath.Dir(h.executable))
		environment(home, "installed next to this program")
		projects = append([]string{home}, projects...)
	}
	for _, dir := range projects {
		environment(filepath.Join(dir, ".venv"), "project .venv")
	}
	environment(h.env("VIRTUAL_ENV"), "VIRTUAL_ENV")
	environment(h.env("CONDA_PREFIX"), "CONDA_PREFIX")
	for i := range found {
		c := &found[i]
		switch {
		case want != "" && c.Kind != Kind(want):
			c.Reason = "the backend is set to " + want
		case c.Kind == CUDA && !h.gpu:
			c.Reason = "this machine shows no NVIDIA GPU (no /dev/nvidia0)"
		}
	}
	// GPUs go first; otherwise the order of the search stays.
	usableGPU := func(c Candidate) bool { return c.Kind == CUDA && c.Reason == "" }
	gpus := slices.DeleteFunc(slices.Clone(found), func(c Candidate) bool { return !usableGPU(c) })
	return append(gpus, slices.DeleteFunc(found, usableGPU)...), false
}

// absolute returns the path itself if the working directory is unknown.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// parents lists a folder and those above it.
func parents(dir string) (out []string) {
	for above := filepath.Dir(dir); dir != above; dir, above = above, filepath.Dir(above) {
		out = append(out, dir)
	}
	return append(out, dir)
}

// kindOf guesses from a plugin's file name and its folder, which is what its client options depend on.
func kindOf(path string) Kind {
	name := strings.ToLower(filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)))
	for _, word := range []string{"cuda", "nvidia", "gpu"} {
		if strings.Contains(name, word) {
			return CUDA
		}
	}
	return CPU
}

// host describes the machine and the process to the search.
type host struct {
	env        func(string) string
	executable string // path of the running binary, symlinks resolved; may be empty
	workDir    string
	gpu        bool
}

func thisHost() host {
	h := host{env: os.Getenv, gpu: nvidiaGPU("/")}
	if exe, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(exe); err == nil {
			exe = resolved
		}
		h.executable = exe
	}
	h.workDir, _ = os.Getwd()
	return h
}

// nvidiaGPU looks for a GPU's device file, or for the driver's list of GPUs if the device files are made on first use.
func nvidiaGPU(root string) bool {
	for _, pattern := range []string{"dev/nvidia[0-9]*", "proc/driver/nvidia/gpus/*"} {
		if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

// verify returns an error unless a file is a shared library for this machine that exports the function. A library that
// passes may still end the process that loads it.
func verify(path, symbol string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New("there is no such file")
	case err != nil:
		return fmt.Errorf("it cannot be read: %w", err)
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file; give the shared library itself")
	}
	if err := wholeELF(path, uint64(info.Size()), symbol); err != nil {
		return fmt.Errorf("it is not a usable shared library: %w", err)
	}
	return nil
}

// wholeELF checks what the dynamic loader does not: the loader maps segments without looking at the file's length, and
// reading a page behind the end kills the process.
func wholeELF(path string, size uint64, symbol string) (err error) {
	defer func() {
		if r := recover(); r != nil { // debug/elf may panic on damaged files
			err = fmt.Errorf("damaged ELF headers: %v", r)
		}
	}()
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("not an ELF library, or cut short: %w", err)
	}
	defer f.Close()
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if m, ok := machines[runtime.GOARCH]; ok && f.Machine != m {
		return fmt.Errorf("built for %v, this process is %s", f.Machine, runtime.GOARCH)
	}
	for _, p := range f.Progs {
		if p.Filesz > 0 && (p.Off > size || p.Filesz > size-p.Off) {
			return fmt.Errorf("cut short: a segment ends at byte %d of %d", p.Off+p.Filesz, size)
		}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("no table of exported symbols: %w", err)
	}
	if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
		return s.Name == symbol && s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC
	}) {
		return fmt.Errorf("it does not export %s", symbol)
	}
	return nil
}

// cudaDataDirs are the folders in site-packages with CUDA's device library (nvvm/libdevice) and assembler for XLA.
var cudaDataDirs = []string{"nvidia/cu13", "nvidia/cuda_nvcc", "nvidia/cu12"}

// setCUDAFlags sets XLA_FLAGS, which XLA reads once, when the first client starts. Flags of the user are not changed.
//
//   - The device library and the assembler are those of the CUDA wheels next to the plugin. By default XLA searches
//     /usr/local/cuda and the working directory.
//   - Tensors are rounded to bfloat16 whenever the graph says so. By default XLA omits a rounding before a widening,
//     and then stores float32, at twice the traffic.
func setCUDAFlags(plugin string) {
	setXLAFlag("--xla_allow_excess_precision=", "false")
	site := filepath.Dir(filepath.Dir(filepath.Dir(plugin)))
	for _, dir := range cudaDataDirs {
		dir = filepath.Join(site, dir)
		if strings.ContainsAny(dir, " \t\n") { // XLA_FLAGS has no quoting to rely on
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, "nvvm", "libdevice")); err == nil && info.IsDir() {
			setXLAFlag("--xla_gpu_cuda_data_dir=", dir)
			return
		}
	}
}

func setXLAFlag(flag, value string) {
	if given := os.Getenv("XLA_FLAGS"); !strings.Contains(given, flag) {
		_ = os.Setenv("XLA_FLAGS", strings.TrimSpace(given+" "+flag+value))
	}
}
