// Package process tells what this process has cost: processor time and memory. It imports the standard library.
package process

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// CPUSeconds returns the processor time of all threads so far, the kernel's part included.
func CPUSeconds() (float64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(), nil
}

// Resident returns the memory that is in use now, device buffers on the host included, and the most that ever was, in
// bytes; zeros where the operating system does not tell.
func Resident() (now, peak int64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			now = kib << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			peak = kib << 10
		}
	}
	return now, peak
}
