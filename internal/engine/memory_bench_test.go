package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

// cifar10 is EDM's network for CIFAR-10 with classes: 55.7 million parameters.
const cifar10 = `{"model_type":"SongUNet","img_resolution":32,"img_channels":3,"label_dim":10,"model_channels":128,
	"channel_mult":[2,2,2],"augment_dim":9}`

// BenchmarkRunMemory reports the process's largest resident memory, as a multiple of the bytes of the state of a run of
// EDM's network for CIFAR-10 (parameters, two moments and the average), while the run is created and while its model is
// saved. At most 2.2 is wanted. Linux alone.
//
//	go test ./internal/engine -run '^$' -bench RunMemory -benchtime 1x
func BenchmarkRunMemory(b *testing.B) {
	for b.Loop() {
		e := reopen(b, b.TempDir(), Config{})
		w, err := e.catalog.CreateDataset("noise", data.Form{Height: 32, Width: 32, Channels: 3, Labels: true}, 8)
		if err == nil {
			err = w.Uint8(make([]uint8, 8*32*32*3), make([]int32, 8))
		}
		if err == nil {
			err = e.catalog.PlaceDataset("noise", w, false)
		}
		if err != nil {
			b.Fatal(err)
		}
		state := 16 * 55_735_299.0
		for _, call := range []struct{ name, body string }{
			{"CreateRun", `{"name":"r","stage":"pretrain","dataset":"noise","batch":8,"network":` + cifar10 + `}`},
			{"SaveModel", `{"run":"r","name":"m"}`},
		} {
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil { // the peak begins anew
				b.Skip(err)
			}
			if _, err := perform(b.Context(), e, call.name, call.body, nil); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(peakResident(b)/state, call.name+"-peak/state")
		}
	}
}

// peakResident returns the largest resident memory since it was last reset, in bytes.
func peakResident(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return 1024 * kib
}
