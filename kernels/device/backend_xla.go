//go:build cgo && linux

package device

import (
	"fmt"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/xla"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
)

func init() {
	// gomlx would otherwise download plugins at the first use of a backend.
	xla.EnableAutoInstall(false)
}

// openXLA starts a client of a verified plugin.
func openXLA(path string, kind Kind, cfg Config) (b backends.Backend, version string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the client does not start: %v", r)
		}
	}()
	shim.TuneMalloc()
	if kind == CUDA {
		pointXLAToCUDA(path)
	}
	plugin, err := shim.Load(path)
	if err != nil {
		return nil, "", err
	}
	name, options := plugin.Name, pjrt.NamedValuesMap{}
	if kind == CUDA {
		options["preallocate"] = false
		options["memory_fraction"] = float32(cfg.MemoryFraction)
	} else {
		name += ",shared_buffers"
	}
	x, err := xla.NewWithOptions(name, options)
	if err != nil {
		return nil, "", fmt.Errorf("the client does not start: %w", err)
	}
	return x, fmt.Sprintf("%d.%d", plugin.Major, plugin.Minor), nil
}
