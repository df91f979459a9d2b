package device

import (
	"errors"
	"log/slog"
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
		"project/"+site+cpuSO, "project/.venv/"+site+cpuSO, "project/.venv/"+site+cudaSO,
		"project/bin/anisoflight",
		"[a]*?/.venv/"+site+cpuSO, "[a]*?/inner/file", // a path, not a pattern
		"active/"+site+cpuSO,
		"conda/"+site+"other_wheel/libpjrt_cpu.so",
	)
	env := map[string]string{
		"VIRTUAL_ENV": filepath.Join(root, "active"), "CONDA_PREFIX": filepath.Join(root, "conda"),
	}
	return root, host{
		env:        func(name string) string { return env[name] },
		executable: filepath.Join(root, "project/bin/anisoflight"),
		workDir:    filepath.Join(root, "[a]*?/inner"),
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
		"project/" + site + cpuSO,
		"project/.venv/" + site + cpuSO,
		"[a]*?/.venv/" + site + cpuSO,
		"active/" + site + cpuSO,
		"conda/" + site + "other_wheel/libpjrt_cpu.so",
	}
	cuda := "project/.venv/" + site + cudaSO
	for _, c := range []struct {
		name string
		cfg  Config
		gpu  bool
		want []string
	}{
		{"without a GPU", Config{}, false, inOrder},
		{"with a GPU", Config{}, true, append([]string{cuda}, inOrder...)},
		{"CPU asked for", Config{Plugin: "cpu"}, true, inOrder},
		{"CUDA asked for", Config{Plugin: "cuda"}, true, []string{cuda}},
	} {
		h.gpu = c.gpu
		found, named := search(c.cfg, h)
		if got := paths(root, found, true); !slices.Equal(got, c.want) || named {
			t.Errorf("%s: %q (named %v), want %q", c.name, got, named, c.want)
		}
		if i := slices.IndexFunc(found, func(c Candidate) bool { return c.Kind == CUDA }); !c.gpu && i >= 0 &&
			!strings.Contains(found[i].Reason, "no NVIDIA GPU") {
			t.Errorf("%s: the CUDA plugin has the reason %q", c.name, found[i].Reason)
		}
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

// What the search finds but cannot use is passed over; the report says why and warnings tell of the slow fallback. If a
// kind of plugin is asked for there is no fallback.
func TestFallback(t *testing.T) {
	root := tree(t, site+cpuSO)
	var log strings.Builder
	cfg := Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	dev := &Device{client: &client{cfg: cfg}}
	env := map[string]string{"VIRTUAL_ENV": root}
	if err := dev.start(host{env: func(name string) string { return env[name] }}); err != nil {
		t.Fatal(err)
	}
	defer dev.backend.Finalize()
	found := dev.report.Candidates
	if dev.Name() != "go" || len(found) != 1 || found[0].Used || !strings.Contains(found[0].Reason, "ELF") {
		t.Errorf("%s of the candidates %+v, want one that is no ELF file", dev.Name(), found)
	}
	for kind, want := range map[string]string{"cpu": "ELF", "cuda": "no cuda plugin found; install one"} {
		asked := &Device{client: &client{cfg: Config{Plugin: kind, Logger: cfg.Logger}}}
		err := asked.start(host{env: func(name string) string { return env[name] }})
		var pe *PluginError
		if !errors.As(err, &pe) || pe.Path != kind || !strings.Contains(pe.Reason, want) {
			t.Errorf("device %s: error %v, want one that says %q", kind, err, want)
		}
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "slower than XLA") {
		t.Errorf("logged %s", log.String())
	}
}
