package schedule_test

import (
	"fmt"
	"log"

	"github.com/anisoflight/anisoflight/schedule"
)

// EDM's noise grid as a schedule, asked for a noise level and for a time.
func ExampleIsotropic() {
	theta, err := schedule.InitialTheta("edm", 32, 6400, 1e-9)
	if err != nil {
		log.Fatal(err)
	}
	s := schedule.Isotropic(theta.Path(6400, 1e-9))
	t := s.TimeOf(0, 2.5)
	fmt.Printf("σ = %.1f at t = %.0f of %.0f\n", s.Sigma(0, t), t, s.T())
	// Output: σ = 2.5 at t = 3197 of 6400
}

// The schedule of least energy from one pass over the data: here residuals of unit
// Gaussian data, 1/(1 + g), for which the least energy is close to π².
func ExampleGeodesic() {
	var pass []schedule.Sample
	for sigma := 1e-4; sigma < 100; sigma *= 1.02 {
		pass = append(pass, schedule.ResidualSample(sigma, 1/(1+sigma*sigma), 0, 1))
	}
	_, report, err := schedule.Geodesic(pass, 1, 6400, 1e-9, 32)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("bound %.2f, on 32 knots %.2f\n", report.Bound, report.Energy)
	// Output: bound 9.71, on 32 knots 10.66
}
