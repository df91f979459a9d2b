package solver_test

import (
	"fmt"
	"log"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// What a sampler is made of: where to evaluate, and what to do with the answers.
func ExampleNew() {
	path, err := schedule.NewPath([]float64{0, 1}, []float64{0.01, 4})
	if err != nil {
		log.Fatal(err)
	}
	plan, err := solver.New(solver.Settings{Solver: "ab", Order: 2, Steps: 3}, schedule.Isotropic(path), 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("x = %.0f ξ\n", plan.Init[0])
	for _, s := range plan.Stages {
		fmt.Printf("t = %.2f  flow at g = %.3f, then x ← %.0f x + %.3f flows\n", s.Time, s.G[0], s.Alpha[0], s.Beta[0])
	}
	// Output:
	// x = 2 ξ
	// t = 1.00  flow at g = 4.000, then x ← 1 x + [1.263] flows
	// t = 0.67  flow at g = 0.543, then x ← 1 x + [0.660 -0.195] flows
	// t = 0.33  flow at g = 0.074, then x ← 1 x + [0.243 -0.072] flows
}
