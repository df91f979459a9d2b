package kernels_test

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
)

// TestWeightOfAnOrder compares the derivatives of the weight of each order with central differences.
func TestWeightOfAnOrder(t *testing.T) {
	const T, c, residual, h = 25.0, 0.3, 1.7, 1e-6
	g, gdot := []float64{0.04, 3}, []float64{0.2, 0.01}
	for order := 1; order <= 4; order++ {
		omega := func(g, gdot float64) float64 {
			return math.Pow(T*gdot/g, float64(order-1)) * schedule.Omega(g, gdot, c)
		}
		terms := kernels.Terms{J: 1, Residual: []float64{residual, residual}}
		weight := terms.Parts([]float64{omega(g[0], gdot[0]), omega(g[1], gdot[1])}, g, gdot, c, order)[0]
		for i := range g {
			byG := residual * (omega(g[i]*(1+h), gdot[i]) - omega(g[i]*(1-h), gdot[i])) / (2 * h * g[i])
			bySpeed := residual * (omega(g[i], gdot[i]*(1+h)) - omega(g[i], gdot[i]*(1-h))) / (2 * h * gdot[i])
			if math.Abs(weight.A[i]/byG-1) > 1e-8 || math.Abs(weight.B[i]/bySpeed-1) > 1e-8 {
				t.Errorf("order %d, sample %d: A %v, B %v; differences %v, %v", order, i, weight.A[i], weight.B[i], byG, bySpeed)
			}
		}
	}
}
