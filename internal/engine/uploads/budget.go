package uploads

import (
	"sync/atomic"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Budget bounds the bytes that uploads receive, and those that all uploads under way hold together, on disk or in
// memory.
type Budget struct {
	Upload   int64 // received by one upload
	Together int64
	held     atomic.Int64
}

// Held returns the number of bytes that the uploads under way hold.
func (b *Budget) Held() int64 { return b.held.Load() }

// bounded is an upload within a budget. A batch for which there is no room is refused, and what the upload holds is
// given back when it is over.
type bounded struct {
	api.Upload
	budget   *Budget
	limit    int64 // bytes that it may receive
	rowBytes int64 // received with a row
	cost     int64 // bytes that it holds for each one received
	want     int64 // rows that the client has announced; 0 for any number
	rows     int64 // received
	held     int64
}

// bound returns u within the budget.
func (b *Budget) bound(u api.Upload, in api.Schema, rows, limit, cost int64) api.Upload {
	return &bounded{Upload: u, budget: b, limit: limit, rowBytes: in.RowBytes(), cost: cost, want: rows}
}

// Write implements api.Upload.
func (u *bounded) Write(b api.Batch) error {
	bytes := api.Times(api.Times(int64(b.Rows), u.rowBytes), u.cost)
	if used := u.budget.held.Add(bytes); used > u.budget.Together {
		u.budget.held.Add(-bytes)
		return api.Errorf(api.Busy, "The uploads under way hold %d bytes; %d more exceed the %d that they may hold together",
			used-bytes, bytes, u.budget.Together).WithHint("Try again when another has ended.")
	}
	u.held += bytes
	u.rows += int64(b.Rows)
	switch {
	case u.want != 0 && u.rows > u.want:
		return u.mismatch()
	case u.rows*u.rowBytes > u.limit:
		return exceeded(u.limit)
	}
	return u.Upload.Write(b)
}

// Commit implements api.Upload. A stream that a client's exception cuts off ends as a whole one does: only the number
// of rows that was announced tells the two apart.
func (u *bounded) Commit() (int64, error) {
	defer u.giveBack()
	if u.want != 0 && u.rows != u.want {
		return 0, u.mismatch()
	}
	return u.Upload.Commit()
}

// Abort implements api.Upload.
func (u *bounded) Abort() {
	defer u.giveBack()
	u.Upload.Abort()
}

func (u *bounded) giveBack() {
	u.budget.held.Add(-u.held)
	u.held = 0
}

func (u *bounded) mismatch() error {
	err := api.Errorf(api.BadRequest, "rows announced %d rows, and %d came", u.want, u.rows)
	if u.rows < u.want {
		err = err.WithHint("The upload was cut off, and nothing is stored: send it again.")
	}
	return err
}

func exceeded(limit int64) error {
	return api.Errorf(api.TooLarge, "The upload exceeds %d bytes", limit)
}
