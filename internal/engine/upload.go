package engine

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Put opens an upload. command is the JSON of a descriptor CMD, which names the operation in "op", or nil where path,
// such as ["datasets","digits"], says it all.
func (e *Engine) Put(_ context.Context, command json.RawMessage, path []string, in api.Schema) (Upload, error) {
	if command == nil {
		if len(path) != 2 || path[0] != "datasets" {
			return nil, api.Errorf(api.BadRequest, "Nothing can be uploaded to the path %q", path).
				WithHint("Upload data sets to [\"datasets\", name]; schedules and bases with the commands PutSchedule and PutBasis.")
		}
		command, _ = json.Marshal(api.PutDataset{Name: path[1]})
		return e.putDataset(command, in)
	}
	op, err := api.Op(command)
	if err != nil {
		return nil, err
	}
	switch op {
	case "PutDataset":
		return e.putDataset(command, in)
	case "PutSchedule":
		return e.putSchedule(command, in)
	case "PutBasis":
		return e.putBasis(command, in)
	}
	return nil, api.Errorf(api.OpNotFound, "There is no upload %q", op).WithHint("There are PutDataset, PutSchedule and PutBasis.")
}

// room counts the bytes an upload has received and refuses more than the limit.
type room struct{ used, limit int64 }

func (r *room) take(s api.Schema, b api.Batch) error {
	r.used += int64(b.Rows) * s.RowBytes()
	if r.used > r.limit {
		return api.Errorf(api.TooLarge, "The upload exceeds %d bytes", r.limit)
	}
	return nil
}
