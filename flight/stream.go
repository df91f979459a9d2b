package flight

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
	"github.com/anisoflight/anisoflight/flight/wire"
)

// outStream is the sink of a DoGet or DoExchange.
type outStream struct {
	to      *wire.Writer
	api     api.Schema
	arrow   *arrow.Schema
	most    int // rows a message
	started time.Time
	last    time.Time       // when something was sent
	rows    int64           // sent so far
	waits   func() api.Meta // what the work waits for; nil, or a nil result: nothing to tell of
}

// openStream sends the schema and a batch of no rows that carries meta.
func openStream(to wire.Sender, s api.Schema, most int, meta api.Meta) (*outStream, error) {
	as, err := columns.ToArrow(s)
	if err != nil {
		return nil, err
	}
	o := &outStream{to: wire.NewWriter(to, as, nil), api: s, arrow: as, most: most, started: time.Now()}
	return o, o.empty(meta)
}

// event sends an event: its rows, cut to size, with the metadata on the last of them, or its metadata alone. Every
// message carries metadata; rows that came without say how many there have been.
func (o *outStream) event(e api.Event) error {
	if e.Batch == nil {
		return o.empty(e.Meta)
	}
	b := *e.Batch
	for from := 0; ; {
		to := min(from+o.most, b.Rows)
		meta := api.Done(o.rows+int64(to-from), -1)
		if to == b.Rows && e.Meta != nil {
			meta = e.Meta
		}
		if err := o.send(columns.Rows(o.api, b, from, to), meta); err != nil || to == b.Rows {
			return err
		}
		from = to
	}
}

// empty sends a batch of no rows with metadata.
func (o *outStream) empty(meta api.Meta) error { return o.send(columns.Empty(o.api), meta) }

// heartbeat says that the stream is alive, and what the work waits for.
func (o *outStream) heartbeat() error {
	meta := api.Meta{"event": "progress"}
	if o.waits != nil {
		if what := o.waits(); what != nil {
			meta = what
		}
	}
	meta["rows"], meta["elapsed_s"] = o.rows, o.elapsed()
	return o.empty(meta)
}

// end sends the last message, which says that all went well. more is what the operation adds to it.
func (o *outStream) end(more map[string]any) error {
	meta := api.Meta{}
	maps.Copy(meta, more)
	meta["event"], meta["rows"], meta["elapsed_s"] = "end", o.rows, o.elapsed()
	return o.empty(meta)
}

func (o *outStream) lastSent() time.Time { return o.last }

func (o *outStream) elapsed() float64 { return time.Since(o.started).Seconds() }

func (o *outStream) send(b api.Batch, meta api.Meta) error {
	text, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	r, err := columns.Record(o.arrow, o.api, b)
	if err != nil {
		return err
	}
	defer r.Release()
	if err := o.to.Write(r, text); err != nil {
		return transportError(err)
	}
	o.rows += int64(b.Rows)
	o.last = time.Now()
	return nil
}
