package train

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/alloctest"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// TestStoringCopiesOnce counts the copies of the network's parameters that storing takes from the heap: none before the
// first step, then one of each part of the state, or of the average for a model, and never one for the files.
func TestStoringCopiesOnce(t *testing.T) {
	cfg := tinyConfig(Pretrain)
	cfg.Network = json.RawMessage(`{"model_type":"SongUNet","img_resolution":4,"img_channels":1,"label_dim":2,
		"model_channels":64,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`)
	r := start(t, cfg, Sources{Dataset: tinyData(t, 20)})
	parameters := 4 * float64(r.net.ParamCount()) // bytes
	if !r.model.Device().HostVisible() {
		parameters *= 2 // what comes from the device is copied once more, into PyTorch's layout
	}
	dir := t.TempDir()
	var state *checkpoint.Run
	var model *checkpoint.Model
	take := func() (err error) { state, err = r.State(t.Context()); return err }
	learn := func() (err error) { model, err = r.Model(t.Context()); return err }
	save := func() error {
		return checkpoint.SaveRun(filepath.Join(dir, "run"), filepath.Join(dir, "previous"), state)
	}
	publish := func() error { return checkpoint.SaveModel(filepath.Join(dir, "model"), model, true) }
	const slack = 0.5 // of the parameters: the largest of them, buffers, headers
	for _, c := range []struct {
		name   string
		do     func() error
		copies float64
	}{
		{"the state before the first step", take, 0},
		{"storing it", save, 0},
		{"a step", func() error { step(t, r, 1); return nil }, -1},
		{"the state after a step", take, 4},
		{"storing that", save, 0},
		{"the model", learn, 1},
		{"storing the model", publish, 0},
	} {
		var err error
		got := float64(alloctest.Bytes(func() { err = c.do() })) / parameters
		if err != nil {
			t.Fatal(err)
		}
		if c.copies >= 0 && got > c.copies+slack {
			t.Errorf("%s takes %.2f copies of the parameters, want %g", c.name, got, c.copies)
		}
	}
}
