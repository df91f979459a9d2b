// Package process measures the memory of this process.
package process

import (
	"fmt"
	"os"
	"strings"
)

// Resident returns the resident memory of this process, including device buffers on the host, and its peak, in bytes.
// It returns zeros if the operating system does not report them.
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
