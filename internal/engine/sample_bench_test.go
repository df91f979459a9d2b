package engine

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/process"
	"github.com/anisoflight/anisoflight/kernels"
)

// digits is the network of the digits recipe.
const digits = `{"model_type":"SongUNet","img_resolution":8,"img_channels":1,"label_dim":10,"model_channels":16,
	"channel_mult":[1,2],"num_blocks":1,"attn_resolutions":[4],"dropout":0}`

// BenchmarkSample draws 256 digits at NFE 9 and, in turn, evaluates the network nine times on as many images and
// nothing else. host-% is what the rest of a request adds: plans, latents, coefficients, combinations, pixels and rows;
// host-cpu-% is the same in processor time of all threads, which other programs on the machine disturb less. Medians
// over the pairs.
func BenchmarkSample(b *testing.B) {
	for _, c := range []struct{ name, request string }{
		{"heun", `"solver":"heun","second_point":"endpoint","grid":"edm"`},
		{"ab", `"solver":"ab"`},
		{"unipc", `"solver":"unipc"`},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			writeModel(b, filepath.Join(dir, "models", "digits"), digits, 1)
			e := reopen(b, dir, Config{})
			request := func() {
				job, err := prepare(b.Context(), e, "Sample", `{"model":"digits","n":256,"nfe":9,`+c.request+`}`)
				if err != nil {
					b.Fatal(err)
				}
				if err := job.Run(b.Context(), func(api.Event) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			bare := bareEvaluations(b, e, 9, 256)
			request()
			bare() // both are compiled
			var whole, device, wholeCPU, deviceCPU []time.Duration
			for b.Loop() {
				start, cpu := time.Now(), cpuTime(b)
				request()
				middle, middleCPU := time.Now(), cpuTime(b)
				bare()
				whole, device = append(whole, middle.Sub(start)), append(device, time.Since(middle))
				wholeCPU, deviceCPU = append(wholeCPU, middleCPU-cpu), append(deviceCPU, cpuTime(b)-middleCPU)
			}
			b.ReportMetric(median(device).Seconds()*1000, "device-ms")
			b.ReportMetric(100*(median(whole).Seconds()/median(device).Seconds()-1), "host-%")
			b.ReportMetric(100*(median(wholeCPU).Seconds()/median(deviceCPU).Seconds()-1), "host-cpu-%")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// cpuTime returns the processor time of all threads so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	seconds, err := process.CPUSeconds()
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}

// bareEvaluations returns a function that evaluates a model's network on n images in the engine's batches, so many
// times.
func bareEvaluations(b *testing.B, e *Engine, nfe, n int) func() {
	b.Helper()
	m, err := e.catalog.Model("digits")
	if err != nil {
		b.Fatal(err)
	}
	on, err := m.IsotropicNetwork()
	if err != nil {
		b.Fatal(err)
	}
	size, bucket := on.Pixels(), batch.BucketFor(on, n)
	g := slices.Repeat([]float64{1}, bucket)
	var batches []*kernels.Trajectory
	for range n / bucket {
		t, err := on.NewTrajectory(b.Context(), m.Weights(), make([]float32, bucket*size), make([]int32, bucket), 1)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(t.Close)
		batches = append(batches, t)
	}
	image := make([]float32, bucket*size)
	return func() {
		for _, t := range batches {
			for range nfe {
				if err := t.Evaluate(b.Context(), g); err != nil {
					b.Fatal(err)
				}
			}
			if err := t.Denoised(image); err != nil { // wait for the last one
				b.Fatal(err)
			}
		}
	}
}
