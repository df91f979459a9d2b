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
		if cfg.asked > 0 {
			visible := make([]int64, cfg.asked)
			for i := range visible {
				visible[i] = int64(i)
			}
			options["visible_devices"] = visible
		}
	} else {
		name += ",shared_buffers"
		options["cpu_device_count"] = int64(max(cfg.asked, 1))
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

// newClient starts a client. XLA for CPU has as many threads as NPROC says. Left to itself it counts the processors
// that the process may use, and knows nothing of a container's limit, which Go does.
func newClient(name string, options pjrt.NamedValuesMap) (*xla.Backend, error) {
	said, set := os.LookupEnv(threadsOfXLA)
	_ = os.Setenv(threadsOfXLA, strconv.Itoa(threads()))
	defer func() {
		_ = os.Setenv(threadsOfXLA, said)
		if !set {
			_ = os.Unsetenv(threadsOfXLA)
		}
	}()
	return xla.NewWithOptions(name, options)
}

// quietLoader leaves XLA only its last words before it aborts. For each program that XLA for CPU reads from disk it
// would write long errors that two tuning preferences of the compiler, which are no instructions, are missing in the
// processor. True errors come back as such. Level 2, errors, is what gomlx has set where the user has set nothing.
func quietLoader() {
	const level = "TF_CPP_MIN_LOG_LEVEL"
	if set := os.Getenv(level); set == "" || set == "2" {
		_ = os.Setenv(level, "3")
	}
}
