package engine

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
)

// putSmooth uploads n images of 8×8 pixels whose variance falls with frequency: noise, averaged over 3×3 pixels.
func putSmooth(t *testing.T, e *Engine, name string, n int) {
	t.Helper()
	putSmoothOf(t, e, name, n, 8)
}

// putSmoothOf is putSmooth of images of another size.
func putSmoothOf(t *testing.T, e *Engine, name string, n, size int) {
	t.Helper()
	x, smooth := make([]float32, n*size*size), make([]float32, n*size*size)
	latent.Normal(5, 0, x)
	for i := range smooth {
		at, y0, x0 := i/(size*size)*size*size, i/size%size, i%size
		for y := max(y0-1, 0); y <= min(y0+1, size-1); y++ {
			for k := max(x0-1, 0); k <= min(x0+1, size-1); k++ {
				smooth[i] += x[at+size*y+k]
			}
		}
		smooth[i] = float32(math.Tanh(float64(smooth[i]) / 3))
	}
	in := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Float32, data.HWC, size, size, 1)}}
	upload(t, e, `{"op":"PutDataset","name":"`+name+`"}`, in, api.Batch{Rows: n, Cols: []any{smooth}})
}

// What cannot be searched for is refused with a code, and a search that is given up stores nothing.
func TestSearchesRefuse(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 8)
	flat := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Uint8, data.HWC, 1, 2, 1)}}
	upload(t, e, `{"op":"PutDataset","name":"flat"}`, flat,
		api.Batch{Rows: 2, Cols: []any{[]uint8{1, 2, 1, 2}}})
	wide := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Uint8, data.HWC, 1, 5000, 1)}}
	upload(t, e, `{"op":"PutDataset","name":"wide"}`, wide,
		api.Batch{Rows: 1, Cols: []any{make([]uint8, 5000)}})
	for op, bodies := range map[string]map[string]api.Code{
		`MakePlan {"name":"s","nfe":3,`: {
			`"model":"tiny","dataset":"smooth","solvers":["fitted"]`: api.BadRequest, // gone
			`"model":"tiny","dataset":"flat"`:                        api.BadRequest, // of another size
			`"model":"tiny","dataset":"smooth","samples":2000000`:    api.TooLarge,
			`"model":"tiny","budget":10`:                             api.BadRequest, // too small
		},
	} {
		name, head, _ := strings.Cut(op, " ")
		for body, code := range bodies {
			refuse(t, e, name, head+body+`}`, code)
		}
	}
	for name, body := range map[string]string{
		"MakeSchedule": `{"name":"s","kind":"start","dataset":"smooth"}`,
		"MakePlan":     `{"name":"s","model":"tiny","nfe":2}`,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := perform(ctx, e, name, body, func(api.Meta) { cancel() })
		wantCode(t, name+" cancelled", err, api.Cancelled)
	}
	refuse(t, e, "DeleteSchedule", `{"schedule":"s"}`, api.ScheduleNotFound) // nothing was stored
	refuse(t, e, "DeletePlan", `{"plan":"s"}`, api.PlanNotFound)
}
