// Package contents makes, receives and sends what a data folder contains: models, bases, data sets and schedules.
//
// An upload is stored whole or not at all: nothing is stored before Commit. Begin with Contents.
package contents

import (
	"sync/atomic"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
)

// Contents does the operations on what a catalogue stores. It limits the bytes of each upload, and those that all open
// uploads hold together, on disk or in memory.
type Contents struct {
	Catalog        *catalog.Catalog
	MaxBytes       int64 // limit of a reply
	MaxUploadBytes int64 // limit of an upload and of a data set that is made; all open uploads together: twice that
	heldBytes      atomic.Int64
}

// limitedUpload returns an upload that may receive limit bytes, and holds cost bytes for each. Rows are those that the
// client has announced, 0 for any number. A batch for which there is no room is refused with BUSY.
func (c *Contents) limitedUpload(opened api.Upload, in api.Schema, rows, limit, cost int64) *api.Upload {
	var received, held int64 // rows and bytes
	giveBack := func() {
		c.heldBytes.Add(-held)
		held = 0
	}
	mismatch := func() error {
		err := api.Errorf(api.BadRequest, "rows announced %d rows, and %d came", rows, received)
		if received < rows {
			err = err.WithHint("The upload was cut off, and nothing is stored: send it again.")
		}
		return err
	}
	return &api.Upload{
		Write: func(b api.Batch) error {
			bytes := api.SaturatingProduct(api.SaturatingProduct(int64(b.Rows), in.RowBytes()), cost)
			if used := c.heldBytes.Add(bytes); used > 2*c.MaxUploadBytes {
				c.heldBytes.Add(-bytes)
				return api.Errorf(api.Busy, "Open uploads hold %d bytes; %d more exceed their common limit of %d", used-bytes,
					bytes, 2*c.MaxUploadBytes).WithHint("Try again when another upload has ended.")
			}
			held += bytes
			received += int64(b.Rows)
			switch {
			case rows != 0 && received > rows:
				return mismatch()
			case received*in.RowBytes() > limit:
				return errTooLong(limit)
			}
			return opened.Write(b)
		},
		// A stream that a client's exception cuts off ends like a complete one. Only the announced number of rows shows the
		// difference.
		Commit: func() (int64, error) {
			defer giveBack()
			if rows != 0 && received != rows {
				return 0, mismatch()
			}
			return opened.Commit()
		},
		Abort: func() {
			defer giveBack()
			if opened.Abort != nil {
				opened.Abort()
			}
		},
	}
}

func errTooLong(limit int64) error {
	return api.Errorf(api.TooLarge, "The upload exceeds %d bytes", limit)
}
