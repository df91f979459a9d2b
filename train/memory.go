package train

import (
	"cmp"
	"errors"
	"fmt"
	"sort"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Memory says how a run's steps fit the device's memory.
type Memory struct {
	Devices    int   `json:"devices"`             // of all processes that take parts of a batch
	Microbatch int   `json:"microbatch"`          // images of a batch on the device at a time
	Needed     int64 `json:"needed"`              // bytes, an estimate
	Whole      int64 `json:"whole,omitempty"`     // bytes for the whole batch at a time, if it is divided
	Available  int64 `json:"available,omitempty"` // bytes when the run was opened; 0: unknown
}

// MemoryError is returned for a run whose steps, by estimate, do not fit the device's memory.
type MemoryError struct {
	Memory
	Batch int
}

// Error implements the error interface.
func (e *MemoryError) Error() string {
	advice := "take a smaller network or an estimator that needs less"
	if e.Microbatch > 1 {
		advice = "make microbatch smaller, or leave it out to have it chosen"
	}
	const mib = 1 << 20
	return fmt.Sprintf("a step of batch %d in microbatches of %d needs an estimated %.1f MiB of device memory, %.1f MiB "+
		"are available; %s", e.Batch, e.Microbatch, float64(e.Needed)/mib, float64(e.Available)/mib, advice)
}

// Fit checks that a step of a resolved configuration fits a number of bytes of memory, 0 if unknown. If the
// configuration has no microbatch it chooses the whole batch, or the fewest equal parts that fit.
func (c Config) Fit(m *kernels.Model, available int64) (Memory, error) {
	networkLevels := c.Stage != Pretrain && c.stdSubspace() > 0
	fit := Memory{Available: available}
	var failed error
	fits := func(part int) bool {
		fit.Microbatch = part
		fit.Needed, failed = m.StepMemory(c.Trainer(), c.Batch, part, networkLevels)
		return failed != nil || available == 0 || fit.Needed <= available
	}
	if fits(min(cmp.Or(c.Microbatch, c.Batch), c.Batch)) {
		return fit, failed
	}
	if c.Microbatch == 0 {
		fit.Whole = fit.Needed
		parts := 2 + sort.Search(c.Batch-2, func(i int) bool { return fits(partOf(c.Batch, i+2)) })
		if fits(partOf(c.Batch, parts)) {
			return fit, failed
		}
	}
	return fit, &MemoryError{Memory: fit, Batch: c.Batch}
}

// fitDevices is Fit on the devices of a model and as many of every other process; each takes a part of the batch at a
// time. With choose, and without a microbatch, there is a part for each device, or more if those do not fit.
func (c Config) fitDevices(m *kernels.Model, processes int, choose bool) (fit Memory, err error) {
	devices := m.Device().Peers()
	all := len(devices) * processes
	least, _ := devices[0].Available()
	for _, d := range devices[1:] {
		available, _ := d.Available()
		least = min(least, available)
	}
	divided := c
	if choose && c.Microbatch == 0 && all > 1 {
		divided.Microbatch = partOf(c.Batch, all)
	}
	fit, err = divided.Fit(m, least)
	var large *MemoryError
	if errors.As(err, &large) {
		fit, err = c.Fit(m, least)
	}
	fit.Devices = min(all, partOf(c.Batch, max(1, fit.Microbatch)))
	return fit, err
}

// fitsState checks, before memory is taken, that the device has room for a network's values, their average and the two
// moments of Adam.
func (c Config) fitsState(net kernels.Architecture, dev *device.Device) error {
	const copies, float32Bytes = 4, 4
	needed := int64(net.ParamCount()) * copies * float32Bytes
	if available, known := dev.Available(); known && needed > available {
		return &MemoryError{Memory: Memory{Microbatch: 1, Needed: needed, Available: available}, Batch: c.Batch}
	}
	return nil
}

// partOf returns the size of the largest part if n is divided into equal parts.
func partOf(n, parts int) int { return (n + parts - 1) / parts }
