package uploads

import "github.com/anisoflight/anisoflight/flight/api"

// announced is an upload whose client has said how many rows will come. A stream that a client's exception cuts off
// ends as a whole one does: only their number tells the two apart.
type announced struct {
	api.Upload
	want, got int64
}

// announce holds an upload to a number of rows; 0 stands for any.
func announce(u api.Upload, rows int64) api.Upload {
	if rows == 0 {
		return u
	}
	return &announced{Upload: u, want: rows}
}

// Write implements api.Upload.
func (u *announced) Write(b api.Batch) error {
	if u.got += int64(b.Rows); u.got > u.want {
		return u.mismatch()
	}
	return u.Upload.Write(b)
}

// Commit implements api.Upload.
func (u *announced) Commit() (int64, error) {
	if u.got != u.want {
		return 0, u.mismatch()
	}
	return u.Upload.Commit()
}

func (u *announced) mismatch() error {
	err := api.Errorf(api.BadRequest, "rows announced %d rows, and %d came", u.want, u.got)
	if u.got < u.want {
		err = err.WithHint("The upload was cut off, and nothing is stored: send it again.")
	}
	return err
}

func (u *announced) cost() int64 { return costOf(u.Upload) }
