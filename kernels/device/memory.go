package device

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Available returns how many bytes programs and buffers may still take: what [Config.MemoryLimit] leaves beside the
// buffers that are held, else
//
//	CPU   what the machine has available, or this process's control group if that is less; an equal share of it where
//	      the host is several devices
//	CUDA  the share [Config.MemoryFraction] of the GPU's memory, less the buffers
//
// On CUDA 512 MiB are left to cuDNN in both cases. ok is false where nobody tells.
func (d *Device) Available() (bytes int64, ok bool) {
	reserved := d.held.Load()
	if d.kind() == CUDA {
		reserved += workspaces
	}
	switch {
	case d.cfg.MemoryLimit > 0:
		return max(0, d.cfg.MemoryLimit-reserved), true
	case d.kind() == CUDA:
		total, ok := d.gpuMemory()
		return max(0, int64(d.cfg.MemoryFraction*float64(total))-reserved), ok
	}
	bytes, ok = hostMemory("/")
	return bytes / int64(len(d.devices)), ok
}

// Capacity is Available without regard to what is held, where a limit or a GPU's memory says it: it does not change.
func (d *Device) Capacity() (bytes int64, ok bool) {
	available, ok := d.Available()
	if d.cfg.MemoryLimit > 0 || d.kind() == CUDA {
		available += d.held.Load()
	}
	return available, ok
}

// workspaces is what cuDNN may take for its convolutions beside a program's temporaries, while they run. It is a guess:
// no compiler counts it.
const workspaces = 512 << 20

// hostMemory returns the memory that a process of the system under root may still take.
func hostMemory(root string) (bytes int64, ok bool) {
	bytes = math.MaxInt64
	if kib, found := field(filepath.Join(root, "proc/meminfo"), "MemAvailable:"); found {
		bytes, ok = kib<<10, true
	}
	for _, left := range groupMemory(root) {
		bytes, ok = min(bytes, left), true
	}
	return bytes, ok
}

// groupMemory returns what each control group that this process is in has left, those of version 2 with their
// ancestors. Cached files that nobody uses are given back on demand.
func groupMemory(root string) (left []int64) {
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "" && parts[1] != "memory" {
			continue
		}
		dir, limit, usage, cached := "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
		if parts[1] == "memory" { // version 1
			dir, limit, usage, cached = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file"
		}
		for group := filepath.Clean("/" + parts[2]); ; group = filepath.Dir(group) {
			at := filepath.Join(root, dir, group)
			if most, ok := number(filepath.Join(at, limit)); ok {
				used, _ := number(filepath.Join(at, usage))
				idle, _ := field(filepath.Join(at, "memory.stat"), cached)
				left = append(left, max(0, most-max(0, used-idle)))
			}
			if group == "/" {
				break
			}
		}
	}
	return left
}

// number reads a file that holds one number.
func number(path string) (int64, bool) {
	text, _ := os.ReadFile(path)
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field reads the number behind a name in a file of such lines.
func field(path, name string) (int64, bool) {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) >= 2 && words[0] == name {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// gpuMemory asks the driver, once, how much memory the device's GPU has.
func (d *Device) gpuMemory() (bytes int64, ok bool) {
	d.gpuOnce.Do(func() {
		d.gpuBytes = nvidiaMemory(visibleGPU(os.Getenv("CUDA_VISIBLE_DEVICES"), int(d.ordinal)))
	})
	return d.gpuBytes, d.gpuBytes > 0
}

// visibleGPU returns the driver's name of the GPU that CUDA counts as index.
func visibleGPU(visible string, index int) string {
	if names := strings.Split(visible, ","); visible != "" && index < len(names) {
		return strings.TrimSpace(names[index])
	}
	return strconv.Itoa(index)
}

// nvidiaMemory returns the bytes of a GPU; 0 where the driver's tool does not tell.
func nvidiaMemory(gpu string) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nvidia-smi", "--id="+gpu, "--query-gpu=memory.total", "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return 0
	}
	mib, _ := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return mib << 20
}
