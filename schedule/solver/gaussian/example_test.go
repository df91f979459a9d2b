package gaussian_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

// Nodes for five evaluations of a multistep solver on 8×8 images whose variance falls as the square of the frequency,
// with low and high frequencies on their own.
func ExampleOptimize() {
	data := &gaussian.Spectrum{H: 8, W: 8, C: 1}
	for u := range 8 {
		for v := range 8 {
			data.Directions = append(data.Directions, gaussian.Direction{Variance: 10 / math.Pow(1+float64(u*u+v*v), 2)})
		}
	}
	bands, err := basis.DCTBands(8, 8, 2)
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range []*basis.Basis{basis.None(8, 8), bands} {
		nodes, err := gaussian.Optimize(context.Background(), data, b, gaussian.Settings{
			Sampler: solver.Settings{Solver: "dpmpp2m", NFE: 5}, Family: schedule.Family{Basis: b.Kind()},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("J = %d: %d lists of %d noise levels, relative error %.0e\n",
			b.J(), len(nodes.Sigma), len(nodes.Sigma[0]), math.Sqrt(nodes.Report.W2))
	}
	// Output:
	// J = 1: 1 lists of 6 noise levels, relative error 3e-02
	// J = 2: 2 lists of 6 noise levels, relative error 7e-03
}
