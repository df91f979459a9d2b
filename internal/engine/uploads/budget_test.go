package uploads

import (
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// taken is an upload that takes whatever comes, at three bytes for one.
type taken struct{}

func (taken) Write(api.Batch) error  { return nil }
func (taken) Commit() (int64, error) { return 0, nil }
func (taken) Abort()                 {}
func (taken) cost() int64            { return 3 }

// TestAnnouncedUploadsCostWhatOthersDo: a client that says how many rows will come takes as much memory as one that
// does not.
func TestAnnouncedUploadsCostWhatOthersDo(t *testing.T) {
	in := api.Schema{Columns: []api.Column{{Name: "x", Type: api.Float64}}}
	for name, u := range map[string]api.Upload{"any number": announce(taken{}, 0), "announced": announce(taken{}, 4)} {
		budget := &Budget{Limit: 100}
		w := budget.Within(u, in)
		if err := w.Write(api.Batch{Rows: 4}); err != nil || budget.Held() != 4*8*3 {
			t.Errorf("%s: holds %d, %v", name, budget.Held(), err)
		}
		if err := w.Write(api.Batch{Rows: 2}); api.ErrorOf(err) == nil || api.ErrorOf(err).Code != api.Busy {
			t.Errorf("%s: %v, want BUSY", name, err)
		}
		if w.Abort(); budget.Held() != 0 {
			t.Errorf("%s: still holds %d", name, budget.Held())
		}
	}
}
