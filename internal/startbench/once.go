package startbench

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/anisoflight/anisoflight/internal/modelbench"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// start is what a process says of itself: with its first result the times, and afterwards what came of it.
type start struct {
	Device   string  `json:"device,omitempty"`
	Open     float64 `json:"open_s,omitempty"`    // to find and open the device
	Compile  float64 `json:"compile_s,omitempty"` // to make the program's executables ready, drawing their graphs included
	FromDisk bool    `json:"from_disk,omitempty"`
	Digest   string  `json:"digest,omitempty"` // of all bits that the program has computed
}

// Once does a program once on a device that it opens, and writes two lines of JSON: as soon as there is a result, and then
// what it is.
func Once(ctx context.Context, open func() (*device.Device, error), m *checkpoint.Model, batch int, program string, at kernels.Precision, w io.Writer) error {
	began := time.Now()
	dev, err := open()
	if err != nil {
		return err
	}
	defer dev.Close()
	first := start{Device: dev.Name(), Open: time.Since(began).Seconds()}
	b, err := modelbench.Open(dev, m, batch, at)
	if err != nil {
		return err
	}
	defer b.Close()
	c, err := b.Compile(ctx, program)
	if err != nil {
		return err
	}
	first.Compile, first.FromDisk = c.Seconds, c.FromDisk
	lines := json.NewEncoder(w)
	if err := lines.Encode(first); err != nil {
		return err
	}
	var then start
	if then.Digest, err = b.Digest(ctx, program); err != nil {
		return err
	}
	return lines.Encode(then)
}
