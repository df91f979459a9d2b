package uploads

import (
	"sync/atomic"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
)

// Uploads opens uploads into a catalogue. It bounds the bytes that they receive, and those that all under way hold
// together, on disk or in memory.
type Uploads struct {
	Catalog  *catalog.Catalog
	MaxBytes int64 // received by one upload; twice as many are held by all together
	held     atomic.Int64
}

// bound returns an upload within the bounds: it may receive limit bytes, and holds cost bytes for each. Rows are those
// that the client has announced, 0 for any number. A batch for which there is no room is refused.
func (u *Uploads) bound(opened api.Upload, in api.Schema, rows, limit, cost int64) *api.Upload {
	var received, held int64 // rows and bytes
	giveBack := func() {
		u.held.Add(-held)
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
			if used := u.held.Add(bytes); used > 2*u.MaxBytes {
				u.held.Add(-bytes)
				return api.Errorf(api.Busy,
					"The uploads under way hold %d bytes; %d more exceed the %d that they may hold together", used-bytes, bytes,
					2*u.MaxBytes).WithHint("Try again when another has ended.")
			}
			held += bytes
			received += int64(b.Rows)
			switch {
			case rows != 0 && received > rows:
				return mismatch()
			case received*in.RowBytes() > limit:
				return exceeded(limit)
			}
			return opened.Write(b)
		},
		// A stream that a client's exception cuts off ends as a whole one does: only the number of rows that was announced
		// tells the two apart.
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

func exceeded(limit int64) error {
	return api.Errorf(api.TooLarge, "The upload exceeds %d bytes", limit)
}
