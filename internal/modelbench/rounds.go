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
}

// Report is what Measure gives.
type Report struct {
	Device     string  `json:"device"`
	Parameters int     `json:"parameters"`
	Batch      int     `json:"batch"`
	Matmul     float64 `json:"matmul_gflops"` // the device's rate of float32 matrix products
	Rows       []Row   `json:"rows"`
}

// Measure compiles the programs, and runs all of them in turn, so that what else the
// machine does falls on all alike. progress is told of runs done.
func Measure(ctx context.Context, b *Bench, programs []string, rounds int, progress func(done, total int)) (Report, error) {
	r := Report{Device: b.dev.Name(), Parameters: b.net.ParamCount(), Batch: b.in.batch}
	var err error
	if r.Matmul, err = MatmulRate(ctx, b.dev); err != nil {
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
			progress((n+1)*len(programs)+i+1, total)
		}
	}
	for i := range r.Rows {
		r.Rows[i].Wall, r.Rows[i].CPU = stat.Of(wall[i]), stat.Of(cpu[i])
	}
	return r, nil
}
