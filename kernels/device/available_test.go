package device

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHostMemory: the least of what the machine has and what the control groups leave.
func TestHostMemory(t *testing.T) {
	const meminfo = "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
		ok    bool
	}{
		{"nothing is known", nil, 0, false},
		{"the machine alone", map[string]string{"proc/meminfo": meminfo}, 8000 << 10, true},
		{"a group without a limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/app\n",
			"sys/fs/cgroup/app/memory.max": "max\n", "sys/fs/cgroup/app/memory.current": "5000\n",
		}, 8000 << 10, true},
		{"a group of version 2", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/app\n",
			"sys/fs/cgroup/app/memory.max": "1000000\n", "sys/fs/cgroup/app/memory.current": "700000\n",
			"sys/fs/cgroup/app/memory.stat": "anon 400000\ninactive_file 300000\n",
		}, 600000, true},
		{"the group above has less", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/pod/app\n",
			"sys/fs/cgroup/pod/app/memory.max": "max\n",
			"sys/fs/cgroup/pod/memory.max":     "500000\n", "sys/fs/cgroup/pod/memory.current": "400000\n",
		}, 100000, true},
		{"a group of version 1", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "3:cpu:/x\n2:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "900000\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "950000\n",
		}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, ok := hostMemory(root); ok != c.ok || ok && got != c.want {
				t.Errorf("%d, %v, want %d, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestVisibleGPU(t *testing.T) {
	for _, c := range []struct {
		visible string
		index   int
		want    string
	}{{"", 1, "1"}, {"3,5", 1, "5"}, {"GPU-1a", 0, "GPU-1a"}} {
		if got := visibleGPU(c.visible, c.index); got != c.want {
			t.Errorf("%q, %d: %s, want %s", c.visible, c.index, got, c.want)
		}
	}
}
