package modelbench

import (
	"context"

	"github.com/anisoflight/anisoflight/internal/stat"
)

// Row is what a program costs, per call.
type Row struct {
	Compiled
	Wall stat.Stat `json:"wall"` // seconds
	CPU  stat.Stat `json:"cpu"`  // seconds of processor time
	// FLOPs of one call, as device.Program counts them.
	FLOPs  int64   `json:"flops"`
	GFLOPS float64 `json:"gflops"` // per second, at the median
	MFU    float64 `json:"mfu"`    // the same as a share of the rate of matrix products
}

// Report is what Measure gives.
type Report struct {
	Device     string  `json:"device"`
	Precision  string  `json:"precision"`
	Parameters int     `json:"parameters"`
	Batch      int     `json:"batch"`
	Matmul     float64 `json:"matmul_gflops"` // the device's rate of matrix products in that precision
	Rows       []Row   `json:"rows"`
}

// Measure compiles the programs, and runs all of them in turn, so that what else the
// machine does falls on all alike. progress is told of runs done.
func Measure(ctx context.Context, b *Bench, programs []string, rounds int, progress func(done, total int)) (Report, error) {
	r := Report{Device: b.dev.Name(), Precision: string(b.at), Parameters: b.net.ParamCount(), Batch: b.in.batch}
	var err error
	if r.Matmul, err = b.matmul(ctx); err != nil {
		return r, err
	}
	total := (rounds + 1) * len(programs)
	r.Rows = make([]Row, len(programs))
	for i, name := range programs {
		if r.Rows[i].Compiled, err = b.Compile(ctx, name); err != nil {
			return r, err
		}
		progress(i+1, total)
	}
	wall, cpu := make([][]float64, len(programs)), make([][]float64, len(programs))
	for n := range rounds {
		for i, name := range programs {
			t, err := b.Run(ctx, name, 1)
			if err != nil {
				return r, err
			}
			wall[i], cpu[i] = append(wall[i], t.Wall), append(cpu[i], t.CPU)
			r.Rows[i].FLOPs = t.FLOPs
			progress((n+1)*len(programs)+i+1, total)
		}
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Wall, row.CPU = stat.Of(wall[i]), stat.Of(cpu[i])
		row.GFLOPS = float64(row.FLOPs) / 1e9 / row.Wall.Median
		row.MFU = row.GFLOPS / r.Matmul
	}
	return r, nil
}
