package device_test

import (
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// What no backend can do is an error that says so, before one is opened or right after.
func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  device.Config
		want string
	}{
		{"more memory than there is", device.Config{MemoryFraction: 1.5}, "at most 1, got 1.5"},
		{"negative memory", device.Config{MemoryFraction: -0.5}, "above 0 and be at most 1, got -0.5"},
		{"negative memory limit", device.Config{MemoryLimit: -5}, "number of bytes, or 0 for what there is, got -5"},
	} {
		dev, err := device.Open(c.cfg)
		if err == nil {
			dev.Close()
			t.Errorf("%s is no error", c.name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a word of %q", c.name, err, c.want)
		}
	}
}
