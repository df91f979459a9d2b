package uploads

import (
	"sync/atomic"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Budget bounds the bytes that all uploads under way hold together, on disk or in memory.
type Budget struct {
	Limit int64
	held  atomic.Int64
}

// Held returns how many bytes the uploads under way hold.
func (b *Budget) Held() int64 { return b.held.Load() }

// Within returns u as an upload of the budget: a batch for which it has no room is refused, and what the upload holds
// is given back when it is over.
func (b *Budget) Within(u api.Upload, in api.Schema) api.Upload {
	return &budgeted{Upload: u, budget: b, rowBytes: api.Times(in.RowBytes(), costOf(u))}
}

// costOf returns how many bytes an upload takes for each one on the wire: 1, unless it says otherwise.
func costOf(u api.Upload) int64 {
	if c, ok := u.(interface{ cost() int64 }); ok {
		return c.cost()
	}
	return 1
}

type budgeted struct {
	api.Upload
	budget   *Budget
	rowBytes int64
	held     int64
}

// Write implements api.Upload.
func (u *budgeted) Write(b api.Batch) error {
	bytes := api.Times(int64(b.Rows), u.rowBytes)
	if used := u.budget.held.Add(bytes); used > u.budget.Limit {
		u.budget.held.Add(-bytes)
		return api.Errorf(api.Busy, "The uploads under way hold %d bytes; %d more exceed the %d that they may hold together",
			used-bytes, bytes, u.budget.Limit).WithHint("Try again when another has ended.")
	}
	u.held += bytes
	return u.Upload.Write(b)
}

// Commit implements api.Upload.
func (u *budgeted) Commit() (int64, error) {
	defer u.giveBack()
	return u.Upload.Commit()
}

// Abort implements api.Upload.
func (u *budgeted) Abort() {
	defer u.giveBack()
	u.Upload.Abort()
}

func (u *budgeted) giveBack() {
	u.budget.held.Add(-u.held)
	u.held = 0
}
