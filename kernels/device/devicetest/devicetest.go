// Package devicetest opens the device that a package's tests share.
//
// Opening XLA takes a moment and a process needs only one client, so every test
// of a binary gets the same device:
//
//	dev := devicetest.Open(t)
//
// It may import the testing package and kernels/device only, and only tests import it.
package devicetest

import (
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/device"
)

var shared = sync.OnceValues(func() (*device.Device, error) {
	return device.Open(device.Config{})
})

// Open returns the process's device, opened by the first call. It is never closed.
func Open(t testing.TB) *device.Device {
	t.Helper()
	dev, err := shared()
	if err != nil {
		t.Fatalf("open device: %v", err)
	}
	return dev
}

// PureGo returns a pure-Go device of the test's own, closed at its end.
func PureGo(t testing.TB) *device.Device {
	t.Helper()
	dev, err := device.Open(device.Config{Plugin: "go"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}
