package device

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Where wheels put their plugins inside site-packages, better ones first.
var (
	cudaWheels = []string{
		"jax_plugins/xla_cuda13/xla_cuda_plugin.so",
		"jax_plugins/xla_cuda12/xla_cuda_plugin.so",
	}
	cpuWheels = []string{
		pinned.folder + "/" + pinned.file,
		"*/libpjrt_cpu*.so",
		"*/pjrt_c_api_cpu_plugin*.so",
	}
)

// File names of plugins in the folders of PJRT_PLUGIN_LIBRARY_PATH.
var looseNames = []string{"pjrt_c_api_*_plugin*.so", "pjrt[-_]plugin[-_]*.so", "xla_cuda_plugin.so", "libpjrt_*.so"}

// search lists the plugins to try, best first. Those that are no use on this
// machine carry their reason already. only is set where the user named one file:
// then no other may take its place.
func search(cfg Config, h host) (found []Candidate, only bool) {
	want := cfg.Plugin
	if want != "" && want != string(CPU) && want != string(CUDA) {
		path, err := filepath.Abs(want)
		if err != nil {
			path = want
		}
		return []Candidate{{Path: path, Source: cfg.source, Kind: kindOf(path)}}, true
	}

	s := searcher{seen: map[string]bool{}}
	s.library(h.env("PJRT_PLUGIN_LIBRARY_PATH"))
	if h.executable != "" && cfg.ProjectDir == "" {
		s.venv(filepath.Dir(filepath.Dir(h.executable)), "installed beside this program")
	}
	for _, dir := range projectDirs(cfg, h) {
		s.venv(filepath.Join(dir, ".venv"), "project .venv")
	}
	s.venv(h.env("VIRTUAL_ENV"), "VIRTUAL_ENV")
	s.venv(h.env("CONDA_PREFIX"), "CONDA_PREFIX")
	if !s.any(CPU) && want != string(CUDA) || !s.any(CUDA) && (h.gpu || want == string(CUDA)) {
		for _, dir := range h.python() {
			s.sitePackages(dir, "python3's site-packages")
		}
	}
	for i := range s.found {
		c := &s.found[i]
		switch {
		case want != "" && c.Kind != Kind(want):
			c.Reason = "not asked for: the backend is set to " + want
		case c.Kind == CUDA && !h.gpu:
			c.Reason = "this machine shows no NVIDIA GPU (no /dev/nvidia0)"
		}
	}
	// A GPU goes before everything else; otherwise the order of the search stands.
	slices.SortStableFunc(s.found, func(a, b Candidate) int { return rank(a) - rank(b) })
	return s.found, false
}

func rank(c Candidate) int {
	if c.Kind == CUDA && c.Reason == "" {
		return 0
	}
	return 1
}

// projectDirs lists the folders that may hold the project's .venv.
func projectDirs(cfg Config, h host) []string {
	if cfg.ProjectDir != "" {
		return []string{cfg.ProjectDir}
	}
	var dirs []string
	if h.executable != "" {
		dirs = append(dirs, filepath.Dir(filepath.Dir(h.executable)))
	}
	for dir := h.workDir; dir != ""; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return dirs
}

type searcher struct {
	found []Candidate
	seen  map[string]bool
}

func (s *searcher) any(k Kind) bool {
	return slices.ContainsFunc(s.found, func(c Candidate) bool { return c.Kind == k })
}

func (s *searcher) add(pattern, source string) {
	// Glob never answers the pattern itself, so what it finds exists.
	found, _ := filepath.Glob(pattern)
	for _, path := range found {
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		if s.seen[path] {
			continue
		}
		s.seen[path] = true
		s.found = append(s.found, Candidate{Path: path, Source: source, Kind: kindOf(path)})
	}
}

func (s *searcher) library(list string) {
	const source = "PJRT_PLUGIN_LIBRARY_PATH"
	for _, entry := range filepath.SplitList(list) {
		if entry == "" {
			continue
		}
		if strings.HasSuffix(entry, ".so") {
			s.add(literal(entry), source)
			continue
		}
		for _, name := range looseNames {
			s.add(filepath.Join(literal(entry), name), source)
		}
	}
}

func (s *searcher) venv(dir, source string) {
	if dir == "" {
		return
	}
	dirs, _ := filepath.Glob(filepath.Join(literal(dir), "lib", "python3*", "site-packages"))
	for _, d := range dirs {
		s.sitePackages(d, source)
	}
}

func (s *searcher) sitePackages(dir, source string) {
	for _, wheel := range slices.Concat(cudaWheels, cpuWheels) {
		s.add(filepath.Join(literal(dir), wheel), source)
	}
}

// literal escapes a path for use in a glob pattern.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

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
