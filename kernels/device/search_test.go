package device

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree makes empty files under a fresh folder.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		path := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	site   = "lib/python3.12/site-packages/"
	cpuSO  = "fastatomstruct_xla_cpu/libpjrt_cpu.so"
	cudaSO = "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
)

// machine is a host on which everything that can be found is there.
func machine(t *testing.T) (string, host) {
	t.Helper()
	root := tree(t,
		"library/pjrt_c_api_cpu_plugin.so",
		"project/.venv/"+site+cpuSO, "project/.venv/"+site+cudaSO,
		"project/bin/anisoflight",
		"work/.venv/"+site+cpuSO, "work/inner/file",
		"active/"+site+cpuSO,
		"conda/"+site+"other_wheel/libpjrt_cpu.so",
		"python/"+cpuSO,
	)
	env := map[string]string{
		"PJRT_PLUGIN_LIBRARY_PATH": filepath.Join(root, "library"),
		"VIRTUAL_ENV":              filepath.Join(root, "active"),
		"CONDA_PREFIX":             filepath.Join(root, "conda"),
	}
	return root, host{
		env:        func(name string) string { return env[name] },
		executable: filepath.Join(root, "project/bin/anisoflight"),
		workDir:    filepath.Join(root, "work/inner"),
		python:     func() []string { return []string{filepath.Join(root, "python")} },
	}
}

func paths(root string, found []Candidate, usable bool) []string {
	var out []string
	for _, c := range found {
		if !usable || c.Reason == "" {
			out = append(out, strings.TrimPrefix(c.Path, root+"/"))
		}
	}
	return out
}

func TestSearchOrder(t *testing.T) {
	root, h := machine(t)
	inOrder := []string{
		"library/pjrt_c_api_cpu_plugin.so",
		"project/.venv/" + site + cpuSO,
		"work/.venv/" + site + cpuSO,
		"active/" + site + cpuSO,
		"conda/" + site + "other_wheel/libpjrt_cpu.so",
	}
	cuda := "project/.venv/" + site + cudaSO

	found, only := search(Config{}.withDefaults(h.env), h)
	if got := paths(root, found, true); !slices.Equal(got, inOrder) || only {
		t.Errorf("without a GPU: %q (only %v), want %q", got, only, inOrder)
	}
	if i := slices.IndexFunc(found, func(c Candidate) bool { return c.Kind == CUDA }); i < 0 ||
		!strings.Contains(found[i].Reason, "no NVIDIA GPU") {
		t.Errorf("the CUDA plugin is not listed with its reason: %+v", found)
	}

	h.gpu = true
	found, _ = search(Config{}.withDefaults(h.env), h)
	if got, want := paths(root, found, true), append([]string{cuda}, inOrder...); !slices.Equal(got, want) {
		t.Errorf("with a GPU: %q, want %q", got, want)
	}
	found, _ = search(Config{Plugin: "cpu"}.withDefaults(h.env), h)
	if got := paths(root, found, true); !slices.Equal(got, inOrder) {
		t.Errorf("cpu asked for: %q, want %q", got, inOrder)
	}
	found, _ = search(Config{Plugin: "cuda"}.withDefaults(h.env), h)
	if got := paths(root, found, true); !slices.Equal(got, []string{cuda}) {
		t.Errorf("cuda asked for: %q, want only %q", got, cuda)
	}
	found, _ = search(Config{ProjectDir: filepath.Join(root, "work")}.withDefaults(h.env), h)
	if got := paths(root, found, true); slices.Contains(got, inOrder[1]) || got[1] != inOrder[2] {
		t.Errorf("another project: %q", got)
	}
}

// Of a wheel, the program lies in bin of the environment whose site-packages
// have the plugin.
func TestSearchBesideTheProgram(t *testing.T) {
	root := tree(t, "env/bin/anisoflight", "env/"+site+cpuSO, "env/.venv/"+site+cpuSO, "active/"+site+cpuSO)
	h := host{
		env: func(name string) string {
			return map[string]string{"VIRTUAL_ENV": filepath.Join(root, "active")}[name]
		},
		executable: filepath.Join(root, "env/bin/anisoflight"),
		python:     func() []string { return nil },
	}
	found, _ := search(Config{}.withDefaults(h.env), h)
	want := []string{"env/" + site + cpuSO, "env/.venv/" + site + cpuSO, "active/" + site + cpuSO}
	if got := paths(root, found, true); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSearchAsksPythonLast(t *testing.T) {
	root, h := machine(t)
	asked := 0
	h.python = func() []string { asked++; return []string{filepath.Join(root, "python")} }
	if search(Config{}.withDefaults(h.env), h); asked != 0 {
		t.Error("python3 was started though plugins had been found")
	}
	h.env = func(string) string { return "" }
	h.executable, h.workDir = "", t.TempDir()
	found, _ := search(Config{}.withDefaults(h.env), h)
	if got := paths(root, found, true); asked != 1 || len(got) != 1 || got[0] != "python/"+cpuSO {
		t.Errorf("asked %d times, found %q", asked, got)
	}
}

func TestSearchNamedFile(t *testing.T) {
	_, h := machine(t)
	h.env = func(name string) string { return map[string]string{"ANISOFLIGHT_PLUGIN": "/from/env.so"}[name] }
	found, only := search(Config{}.withDefaults(h.env), h)
	if !only || len(found) != 1 || found[0].Path != "/from/env.so" || found[0].Source != "ANISOFLIGHT_PLUGIN" {
		t.Errorf("environment: %+v, only %v", found, only)
	}
	found, only = search(Config{Plugin: "/from/flag_cuda.so"}.withDefaults(h.env), h)
	if !only || len(found) != 1 || found[0].Path != "/from/flag_cuda.so" || found[0].Kind != CUDA {
		t.Errorf("flag before environment: %+v, only %v", found, only)
	}
}

// Paths are paths: a folder called [x] is not a pattern.
func TestSearchOddNames(t *testing.T) {
	root := tree(t, "[a]*?/.venv/"+site+cpuSO)
	h := host{env: func(string) string { return "" }, python: func() []string { return nil }}
	found, _ := search(Config{ProjectDir: filepath.Join(root, "[a]*?")}.withDefaults(h.env), h)
	if len(found) != 1 {
		t.Errorf("found %+v, want the plugin in the folder with odd characters", found)
	}
}

func TestNvidiaGPU(t *testing.T) {
	for file, want := range map[string]bool{
		"dev/nvidia0": true, "proc/driver/nvidia/gpus/0000:01:00.0/information": true,
		"dev/nvidiactl": false, "dev/null": false,
	} {
		if got := nvidiaGPU(tree(t, file)); got != want {
			t.Errorf("machine with %s has a GPU: %v, want %v", file, got, want)
		}
	}
}

func TestVerdictFollowsTheFile(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := filepath.Join(tree(t, "plugin.so"), "plugin.so")
	key := func(conditions ...string) string {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return verdictKey("probe", path, info, conditions...)
	}
	v := openVerdicts()
	if v.good(key()) {
		t.Error("a verdict before any check")
	}
	v.remember(key())
	if !openVerdicts().good(key()) {
		t.Error("the verdict is forgotten")
	}
	if v.good(key("--xla_flag")) {
		t.Error("the verdict holds under other conditions")
	}
	if err := os.WriteFile(path, []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if v.good(key()) {
		t.Error("the verdict survives a change of the file")
	}
	none := &verdicts{}
	none.remember(key())
	if none.good(key()) {
		t.Error("without a cache folder something was remembered")
	}
}
