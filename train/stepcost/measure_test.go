package stepcost

import (
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device/devicetest"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// TestMeasure: the table has every mode, compares with explicit, and a second reverse
// pass needs more memory than none.
func TestMeasure(t *testing.T) {
	cfg, err := unet.ParseConfig([]byte(`{"model_type":"SongUNet","img_resolution":4,"img_channels":1,"label_dim":2,
		"model_channels":8,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`))
	if err != nil {
		t.Fatal(err)
	}
	net, err := unet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	rows, err := Measure(t.Context(), devicetest.Open(t), Settings{
		Net: net, Batch: 16, Frozen: true, Repeats: 3, Progress: func(done, total int) {
			if told++; done != told || total != 20 {
				t.Errorf("progress %d of %d", done, total)
			}
		},
	})
	if err != nil || len(rows) != len(Modes) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	memory := map[kernels.Mode]int64{}
	for i, r := range rows {
		if r.Mode != Modes[i] || !(0 < r.Low && r.Low <= r.Median && r.Median <= r.High && 0 < r.Ratio && r.RatioLo <= r.RatioHi) {
			t.Errorf("row %+v", r)
		}
		if r.Memory != nil {
			memory[r.Mode] = r.Memory.Total()
			if ratio := float64(r.Estimate.Total()) / float64(r.Memory.Total()); !(ratio > 0.75 && ratio < 1.33) {
				t.Errorf("%s: estimated %+v, the compiler counts %+v", r.Mode, r.Estimate, *r.Memory)
			}
		}
	}
	if rows[0].Ratio != 1 || told != 20 {
		t.Errorf("explicit costs %v of explicit; %d steps told", rows[0].Ratio, told)
	}
	if len(memory) > 0 && !(memory[kernels.LossOnly] < memory[kernels.Explicit] && memory[kernels.Explicit] < memory[kernels.Full]) {
		t.Errorf("memory %v", memory)
	}
}

func TestQuartiles(t *testing.T) {
	if l, m, h := quartiles([]float64{5, 1, 4, 2, 3}); l != 2 || m != 3 || h != 4 {
		t.Errorf("quartiles %v %v %v", l, m, h)
	}
	if l, m, h := quartiles([]float64{7}); l != 7 || m != 7 || h != 7 {
		t.Errorf("quartiles of one value %v %v %v", l, m, h)
	}
}
