//go:build !cgo || !linux

package device

import (
	"github.com/gomlx/gomlx/backends"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

// openXLA returns an error: this build has no plugins.
func openXLA(path string, _ Kind, _ Config) (backends.Backend, *shim.Plugin, error) {
	_, err := shim.Load(path)
	return nil, nil, err
}
