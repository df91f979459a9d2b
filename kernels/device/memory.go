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

// Available returns the bytes that programs and buffers may still take: [Config.MemoryLimit] less the live buffers, or
// without a limit
//
//	CPU   the memory available on the machine or in this process's control group, divided by the number of devices
//	CUDA  the share [Config.MemoryFraction] of the GPU's memory, less the live buffers
//
// On CUDA, 512 MiB are reserved for cuDNN. ok is false if the memory is unknown.
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

// Capacity returns Available without live buffers if there is a limit or a GPU. Then it does not change.
func (d *Device) Capacity() (bytes int64, ok bool) {
	available, ok := d.Available()
	if d.cfg.MemoryLimit > 0 || d.kind() == CUDA {
		available += d.held.Load()
	}
	return available, ok
}

// trimDelay is the time after the last [Buffer.Release] in which freed memory is kept for the next one. Then it is
// returned to the system: mimalloc looks at its clock only when a program runs, the garbage collector after minutes.
const trimDelay = 10 * time.Second

// workspaces is a guess of the memory that cuDNN takes in addition to a program's temporaries.
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

// groupMemory returns what the control groups of this process and each of their ancestors have left, in version 1 or 2.
// Cached files that are not in use count as free.
func groupMemory(root string) (left []int64) {
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "" && parts[1] != "memory" {
			continue
		}
		mount, limit, usage, cached := "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
		if parts[1] == "memory" { // version 1
			mount, limit, usage, cached = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file"
		}
		for group := filepath.Clean("/" + parts[2]); ; group = filepath.Dir(group) {
			dir := filepath.Join(root, mount, group)
			if most, ok := number(filepath.Join(dir, limit)); ok {
				used, _ := number(filepath.Join(dir, usage))
				idle, _ := field(filepath.Join(dir, "memory.stat"), cached)
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

// field reads the number after a name in a file with one name and number per line.
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

// gpuMemory returns the memory of the device's GPU. It asks the driver once.
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

// nvidiaMemory returns the bytes of a GPU, or 0 if nvidia-smi fails.
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
