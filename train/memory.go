package train

import (
	"errors"
	"fmt"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Memory says how a run's steps fit the device's memory.
type Memory struct {
	Devices int `json:"devices"` // that take the parts of a batch, of all processes
	// images of a batch on the device at a time; the batch's own number is all
	Microbatch int   `json:"microbatch"`
	Needed     int64 `json:"needed"` // bytes, an estimate
	// bytes that the whole batch at a time would need, where that is not the case
	Whole     int64 `json:"whole,omitempty"`
	Available int64 `json:"available,omitempty"` // bytes when the run was opened; 0: unknown
}

// MemoryError says that a run's steps do not fit the device's memory, by estimate.
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
	return fmt.Sprintf("a step of batch %d in microbatches of %d needs an estimated %s of device memory, %s are "+
		"available; %s",
		e.Batch, e.Microbatch, mib(e.Needed), mib(e.Available), advice)
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Fit checks that a step of a resolved configuration fits that many bytes of memory, 0 if unknown, and chooses how many
// images the device sees at a time where the configuration leaves it open: all of the batch, or else the fewest equal
// parts that fit.
func (c Config) Fit(m *kernels.Model, available int64) (Memory, error) {
	own := c.Stage != Pretrain && c.stdSubspace() > 0
	need := func(part int) (int64, error) { return m.StepMemory(c.Trainer(), c.Batch, part, own) }
	fit := Memory{Microbatch: c.Microbatch, Available: available}
	if c.Microbatch == 0 || c.Microbatch > c.Batch {
		fit.Microbatch = c.Batch
	}
	var err error
	if fit.Needed, err = need(fit.Microbatch); err != nil {
		return fit, err
	}
	if available == 0 || fit.Needed <= available {
		return fit, nil
	}
	if c.Microbatch != 0 {
		return fit, &MemoryError{Memory: fit, Batch: c.Batch}
	}
	fit.Whole = fit.Needed
	// What is needed rises with the part, so the fewest parts that fit are found by halving.
	tooFew, enough := 1, c.Batch // parts: too few, and the candidate
	for enough-tooFew > 1 {
		parts := (tooFew + enough) / 2
		bytes, err := need(partOf(c.Batch, parts))
		if err != nil {
			return fit, err
		}
		if bytes <= fit.Available {
			enough = parts
		} else {
			tooFew = parts
		}
	}
	fit.Microbatch = partOf(c.Batch, enough)
	if fit.Needed, err = need(fit.Microbatch); err != nil {
		return fit, err
	}
	if fit.Needed > fit.Available {
		return fit, &MemoryError{Memory: fit, Batch: c.Batch}
	}
	return fit, nil
}

// fitDevices is Fit on the devices of a model and as many of each other process, each of which takes a part of the
// batch at a time. Where the parts are left open and may be chosen, there is one for each device, or more where those
// would not fit.
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

// fitsState checks, before any memory is taken, that a network's values fit the device beside what training keeps with
// them: their average, and the two moments of Adam.
func (c Config) fitsState(net kernels.Architecture, dev *device.Device) error {
	const copies, float32Bytes = 4, 4
	needed := int64(net.ParamCount()) * copies * float32Bytes
	if available, known := dev.Available(); known && needed > available {
		return &MemoryError{Memory: Memory{Microbatch: 1, Needed: needed, Available: available}, Batch: c.Batch}
	}
	return nil
}

// partOf is the size of the largest of that many parts, as equal as can be.
func partOf(n, parts int) int { return (n + parts - 1) / parts }
