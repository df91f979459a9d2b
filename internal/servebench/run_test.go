package servebench

import (
	"testing"

	"github.com/anisoflight/anisoflight/internal/modelbench"
	"github.com/anisoflight/anisoflight/kernels/device/devicetest"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// A round of each measure gives numbers that can be.
func TestRun(t *testing.T) {
	cfg, err := unet.ParseConfig([]byte(`{"model_type":"SongUNet","img_resolution":8,"img_channels":1,"label_dim":3,
		"model_channels":8,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelbench.Random(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	rounds := 0
	r, err := Run(t.Context(), devicetest.Open(t), Config{Model: m, N: 16, NFE: 3, Clients: 3, Each: 2, Requests: 2, Rounds: 2, Seats: 1,
		Progress: func(int) { rounds++ }})
	if err != nil {
		t.Fatal(err)
	}
	if rounds != 2 || r.N != 16 || r.NFE != 3 || r.Clients != 3 || r.Each != 2 {
		t.Errorf("%d rounds of %+v", rounds, r)
	}
	for what, v := range map[string]float64{
		"engine": r.Overhead.Engine.Median, "flight": r.Overhead.Flight.Median, "wall": r.Overhead.Wall.Median, "cpu": r.Overhead.CPU.Median,
		"rate": r.Crowd.Rate.Median, "latency": r.Crowd.Latency.Median, "worst": r.Crowd.Together.Worst.Median,
	} {
		if !(v > 0) {
			t.Errorf("%s is %v", what, v)
		}
	}
	if !(r.Crowd.Joined >= 0 && r.Crowd.Joined < 1) {
		t.Errorf("%v of the evaluations were joined", r.Crowd.Joined)
	}
}
