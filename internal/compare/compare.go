package compare

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"
)

// Options are fields of a Sample request by their own names.
type Options = map[string]any

// Choice is one entry of a list to compare: what it is called, and what it says to Sample.
type Choice struct {
	Name    string
	Options Options
}

// Plan says what is compared. Every list has at least one entry.
type Plan struct {
	Schedules, Grids, Solvers []Choice
	NFE                       []int
	// Probes is the number of latents of the ODE error. They are those of ProbeSeed.
	Probes int
	// Reference, if not nil, is what Samples images of each seed i·Samples, i < Seeds,
	// are compared with by the Fréchet distance.
	Reference      *Reference
	Samples, Seeds int
}

// ProbeSeed is the seed of the latents that the ODE error is measured on.
const ProbeSeed = 1_000_000_000_000

// warming is the cheapest way to have every program compiled that samples of a schedule need, so that no row's seconds
// count it.
var warming = Options{"solver": "euler", "steps": 1}

// converged stands for the exact solution of a schedule's path.
var converged = Options{"solver": "heun", "second_point": "endpoint", "grid": "edm", "steps": 60}

// Row is one sampler's result. ODEError is 100 × the rms distance per pixel to the
// converged solution; Frechet is nil without a reference. Where the sampler cannot
// do what was asked, Err says why and the rest is zero.
type Row struct {
	Schedule, Grid, Solver string
	NFE                    int // asked for
	Evaluations            int // counted
	ODEError               float64
	Frechet                *Spread
	Seconds                float64 // per 1000 samples
	Err                    error
}

// Draw draws n images from a seed on with the given options of Sample, and returns
// them with the evaluations counted.
type Draw func(ctx context.Context, n int, seed uint64, o Options) (Images, int, error)

// Run measures every combination and hands it to emit, schedules slowest, NFE
// fastest. An error that bad accepts is one cell's own and stands in its row; any
// other ends the comparison, as does one of a schedule's converged solution.
func Run(ctx context.Context, p Plan, draw Draw, bad func(error) bool, emit func(Row)) error {
	for _, schedule := range p.Schedules {
		exact, _, err := draw(ctx, p.Probes, ProbeSeed, merge(converged, schedule.Options))
		if err != nil {
			return err
		}
		if p.Reference != nil {
			if _, _, err := draw(ctx, p.Samples, 0, merge(warming, schedule.Options)); err != nil {
				return err
			}
		}
		for _, grid := range p.Grids {
			for _, solver := range p.Solvers {
				for _, nfe := range p.NFE {
					row := Row{Schedule: schedule.Name, Grid: grid.Name, Solver: solver.Name, NFE: nfe}
					options := merge(solver.Options, grid.Options, schedule.Options, Options{"nfe": nfe})
					if err := p.measure(ctx, draw, options, exact, &row); err != nil {
						if !bad(err) {
							return err
						}
						row.Err = err
					}
					emit(row)
				}
			}
		}
	}
	return nil
}

// Cells returns the number of rows that Run emits.
func (p Plan) Cells() int { return len(p.Schedules) * len(p.Grids) * len(p.Solvers) * len(p.NFE) }

func (p Plan) measure(ctx context.Context, draw Draw, o Options, exact Images, row *Row) error {
	begin := time.Now()
	probe, evaluations, err := draw(ctx, p.Probes, ProbeSeed, o)
	if err != nil {
		return err
	}
	row.Evaluations, row.ODEError = evaluations, rms100(probe, exact)
	spent, drawn := time.Since(begin), p.Probes
	if p.Reference != nil {
		spent, drawn = 0, p.Seeds*p.Samples
		found := make([]float64, p.Seeds)
		for i := range found {
			begin := time.Now()
			images, _, err := draw(ctx, p.Samples, uint64(i*p.Samples), o)
			if err != nil {
				return err
			}
			spent += time.Since(begin)
			if found[i], err = p.Reference.Distance(images); err != nil {
				return fmt.Errorf("distance to the reference: %w", err)
			}
		}
		spread := spreadOf(found)
		row.Frechet = &spread
	}
	row.Seconds = 1000 * spent.Seconds() / float64(drawn)
	return nil
}

// rms100 is 100 × the rms distance per value.
func rms100(a, b Images) float64 {
	var sum float64
	for i, v := range a.Values {
		d := float64(v) - float64(b.Values[i])
		sum += d * d
	}
	return 100 * math.Sqrt(sum/float64(len(a.Values)))
}

func merge(options ...Options) Options {
	out := Options{}
	for _, o := range options {
		maps.Copy(out, o)
	}
	return out
}
