// Package devicetest opens the device that a package's tests share.
//
// Opening XLA takes a moment and a process needs only one client, so every test
// of a binary gets the same device:
//
//	dev := devicetest.Open(t)
//
// It imports the testing package and kernels/device only, and only tests import it.
package devicetest

import (
	"os"
	"strconv"
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

var interpreter = sync.OnceValues(func() (*device.Device, error) {
	return device.Open(device.Config{Plugin: "go"})
})

// Fast returns the process's pure-Go device, which has nothing to compile, for tests of small networks in which XLA
// is not the point. With ANISOFLIGHT_TEST_DEVICE=xla it is the device of Open.
func Fast(t testing.TB) *device.Device {
	t.Helper()
	if os.Getenv("ANISOFLIGHT_TEST_DEVICE") == "xla" {
		return Open(t)
	}
	dev, err := interpreter()
	if err != nil {
		t.Fatalf("open device: %v", err)
	}
	return dev
}

var (
	hostMu sync.Mutex
	hosts  = map[int]*device.Device{} // by the number of their peers
)

// Host returns the first of n devices of the host, opened by the first call with that n. They are never closed, and
// have nothing in common with the device of Open.
func Host(t testing.TB, n int) *device.Device {
	t.Helper()
	hostMu.Lock()
	defer hostMu.Unlock()
	if hosts[n] == nil {
		dev, err := device.Open(device.Config{Plugin: string(device.CPU), Devices: strconv.Itoa(n)})
		if err != nil {
			t.Fatalf("open %d devices: %v", n, err)
		}
		hosts[n] = dev
	}
	return hosts[n]
}

// Several returns the four devices of Host(t, 4).
func Several(t testing.TB) []*device.Device {
	t.Helper()
	return Host(t, 4).Peers()
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
