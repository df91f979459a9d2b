package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

// A step on the bytes that the run itself would draw next is the run's own step, bit for bit.
func TestTrainStepOnTheRunsOwnBytes(t *testing.T) {
	e := open(t)
	const n, size = 24, 64
	im := data.Images{Height: 8, Width: 8, Channels: 1, Uint8: make([]uint8, n*size), Labels: make([]int32, n)}
	for i := range im.Uint8 {
		im.Uint8[i] = uint8(i * 37)
	}
	for i := range im.Labels {
		im.Labels[i] = int32(i % 3)
	}
	in := labelled(tables.ImageColumn("image", api.Uint8, data.HWC, 8, 8, 1))
	upload(t, e, `{"op":"PutDataset","name":"noise"}`, in,
		api.Batch{Rows: n, Cols: []any{im.Uint8, im.Labels}})
	newRun(t, e, "own", `,"seed":5`)
	newRun(t, e, "sent", `,"seed":5`)
	want := get(t, e, "TrainStep", `{"run":"own","steps":3}`)

	x, got := converse(t, e, "TrainStep", `{"run":"sent"}`, in)
	wide := labelled(tables.ImageColumn("image", api.Uint8, data.CHW, 8, 9, 1))
	_, err := openExchange(t.Context(), e, "TrainStep", `{"run":"sent"}`, wide)
	wantCode(t, "images of another size", err, api.BadTensor)
	order := data.NewOrder(5, n, false)
	for step := range 3 {
		images, labels := []uint8(nil), make([]int32, 8)
		for k := range labels {
			at, _ := order.At(uint64(step*8 + k))
			images, labels[k] = append(images, im.Uint8[at*size:(at+1)*size]...), im.Labels[at]
		}
		got.send(t, x, 8, images, labels)
	}
	if _, err := x.End(t.Context()); err != nil { // which stores the steps
		t.Fatal(err)
	}
	if info := act(t, e, "GetRun", `{"run":"sent"}`); info["step"] != 3.0 || info["stored_step"] != 3.0 {
		t.Errorf("step %v, stored %v", info["step"], info["stored_step"])
	}
	for _, name := range []string{"loss", "energy", "grad_norm", "schedule_grad_norm"} {
		a, b := column[float64](got, name), column[float64](want, name)
		same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
		if len(b) != 3 || !slices.EqualFunc(a, b, same) {
			t.Errorf("%s: %v on bytes that were sent, %v on the run's own", name, a, b)
		}
	}
}
