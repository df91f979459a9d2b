//go:build cgo && linux

package device

import (
	"fmt"
	"os"
	"strconv"

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
func openXLA(path string, kind Kind, cfg Config) (b backends.Backend, plugin *shim.Plugin, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the client does not start: %v", r)
		}
	}()
	shim.TuneMalloc()
	quietLoader()
	if kind == CUDA {
		setCUDAFlags(path)
	}
	if plugin, err = shim.Load(path); err != nil {
		return nil, nil, err
	}
	name, options := plugin.Name, pjrt.NamedValuesMap{}
	if kind == CUDA {
		options["preallocate"] = false
		options["memory_fraction"] = float32(cfg.MemoryFraction)
		if cfg.requested > 0 {
			visible := make([]int64, cfg.requested)
			for i := range visible {
				visible[i] = int64(i)
			}
			options["visible_devices"] = visible
		}
	} else {
		name += ",shared_buffers"
		options["cpu_device_count"] = int64(max(cfg.requested, 1))
	}
	x, err := newClient(name, options)
	if err != nil {
		return nil, nil, fmt.Errorf("the client does not start: %w", err)
	}
	plugin.Configure(shim.Settings{
		Cache:         programCache(path, x, cfg),
		ExactProducts: kind == CUDA,
		RewriteForCPU: kind == CPU,
	})
	return x, plugin, nil
}

// newClient starts a client. It sets the number of XLA's threads in NPROC, because XLA for CPU ignores a container's
// limit, which Go knows.
func newClient(name string, options pjrt.NamedValuesMap) (*xla.Backend, error) {
	before, set := os.LookupEnv(threadsOfXLA)
	_ = os.Setenv(threadsOfXLA, strconv.Itoa(threads()))
	defer func() {
		_ = os.Setenv(threadsOfXLA, before)
		if !set {
			_ = os.Unsetenv(threadsOfXLA)
		}
	}()
	return xla.NewWithOptions(name, options)
}

// quietLoader lets XLA log only fatal errors. For each program that XLA for CPU reads from disk it would log that the
// processor lacks two features, which are tuning preferences of the compiler. Real errors are returned as well. gomlx
// sets level 2, errors, if the user sets none.
func quietLoader() {
	const level = "TF_CPP_MIN_LOG_LEVEL"
	if set := os.Getenv(level); set == "" || set == "2" {
		_ = os.Setenv(level, "3")
	}
}
