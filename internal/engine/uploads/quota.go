package uploads

import "github.com/anisoflight/anisoflight/flight/api"

// quota counts the bytes an upload has received and refuses more than the limit.
type quota struct{ used, limit int64 }

func (q *quota) take(s api.Schema, b api.Batch) error {
	q.used += int64(b.Rows) * s.RowBytes()
	if q.used > q.limit {
		return q.exceeded()
	}
	return nil
}

func (q *quota) exceeded() error {
	return api.Errorf(api.TooLarge, "The upload exceeds %d bytes", q.limit)
}
