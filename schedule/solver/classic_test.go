package solver

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// The samplers as their papers write them: one noise level, a denoiser D(x, σ), the whole of x at once. They share no
// code with the package.

type vec = []float64

type denoiser func(x vec, sigma float64) vec

// combine returns Σ_i w_i v_i.
func combine(w []float64, v ...vec) vec {
	out := make(vec, len(v[0]))
	for i, c := range w {
		for k, e := range v[i] {
			out[k] += c * e
		}
	}
	return out
}

// slopeOf returns dx/dσ = (x − D)/σ.
func slopeOf(den denoiser, x vec, s float64) vec {
	return combine([]float64{1 / s, -1 / s}, x, den(x, s))
}

// classicHeun is EDM's deterministic sampler, algorithm 1 of arXiv:2206.00364 without churn: sigma ends in 0.
func classicHeun(den denoiser, x vec, s []float64) (vec, int) {
	calls := 0
	for i := range len(s) - 1 {
		h := s[i+1] - s[i]
		d := slopeOf(den, x, s[i])
		calls++
		y := combine([]float64{1, h}, x, d)
		if s[i+1] > 0 {
			d2 := slopeOf(den, y, s[i+1])
			calls++
			y = combine([]float64{1, h / 2, h / 2}, x, d, d2)
		}
		x = y
	}
	return x, calls
}

func classicIPNDM(den denoiser, x vec, s []float64) (vec, int) {
	w := [][]float64{{1}, {1.5, -0.5}, {23. / 12, -4. / 3, 5. / 12}, {55. / 24, -59. / 24, 37. / 24, -3. / 8}}
	var hist []vec
	for i := range len(s) - 1 {
		hist = append([]vec{slopeOf(den, x, s[i])}, hist...)
		hist = hist[:min(len(hist), 4)]
		x = combine([]float64{1, s[i+1] - s[i]}, x, combine(w[len(hist)-1], hist...))
	}
	return x, len(s) - 1
}

func classicDPM(order int, taylor float64, lowered bool) func(denoiser, vec, []float64) (vec, int) {
	return func(den denoiser, x vec, s []float64) (vec, int) {
		n := len(s) - 1
		lam := func(i int) float64 { return -math.Log(s[i]) }
		var m []vec
		for i := range n {
			m = append([]vec{den(x, s[i])}, m...)
			k := min(order, i+1)
			if lowered {
				k = min(k, n-i)
			}
			h := lam(i+1) - lam(i)
			e1 := 1 - math.Exp(-h)
			y := combine([]float64{s[i+1] / s[i], e1}, x, m[0])
			switch k {
			case 2:
				d := combine([]float64{1, -1}, m[0], m[1])
				y = combine([]float64{1, 0.5 * e1 * h / (lam(i) - lam(i-1))}, y, d)
			case 3:
				r0, r1 := (lam(i)-lam(i-1))/h, (lam(i-1)-lam(i-2))/h
				a := combine([]float64{1 / r0, -1 / r0}, m[0], m[1])
				b := combine([]float64{1 / r1, -1 / r1}, m[1], m[2])
				d2 := combine([]float64{1 / (r0 + r1), -1 / (r0 + r1)}, a, b)
				d1 := combine([]float64{1, r0}, a, d2)
				phi2 := 1 - e1/h
				phi3 := phi2/h - 0.5
				y = combine([]float64{1, phi2, -taylor * phi3}, y, d1, d2)
			}
			x = y
		}
		return x, n
	}
}

// classicUniPC is UniPC of order 3, data prediction, with the corrector written out as a step of its own.
func classicUniPC(bh1, lowered bool) func(denoiser, vec, []float64) (vec, int) {
	return func(den denoiser, x vec, s []float64) (vec, int) {
		n := len(s) - 1
		lam := func(i int) float64 { return -math.Log(s[i]) }
		m, calls := []vec{den(x, s[0])}, 1
		for i := range n {
			p := min(3, i+1)
			if lowered {
				p = min(p, n-i)
			}
			h := lam(i+1) - lam(i)
			big := math.Exp(-h) - 1
			if bh1 {
				big = -h
			}
			// b_q = h φ_{q+1}(−h) q!·(…)/B(h) in closed form, z = −h.
			z := -h
			ez := math.Exp(z)
			b := []float64{
				((ez-1)/z - 1) / big,
				2 * ((ez-1-z)/(z*z) - 0.5) / big,
				6 * ((ez-1-z-z*z/2)/(z*z*z) - 1./6) / big,
			}
			var r []float64
			var d []vec
			for k := 1; k < p; k++ {
				r = append(r, (lam(i-k)-lam(i))/h)
				d = append(d, combine([]float64{1 / r[k-1], -1 / r[k-1]}, m[k], m[0]))
			}
			base := combine([]float64{s[i+1] / s[i], 1 - ez}, x, m[0])
			var rho []float64
			switch p {
			case 2:
				rho = []float64{0.5}
			case 3:
				det := r[1] - r[0]
				rho = []float64{(b[0]*r[1] - b[1]) / det, (b[1] - b[0]*r[0]) / det}
			}
			pred := base
			for k, w := range rho {
				pred = combine([]float64{1, -big * w}, pred, d[k])
			}
			if i == n-1 {
				x = pred
				break
			}
			next := den(pred, s[i+1])
			calls++
			var c []float64
			switch p {
			case 1:
				c = []float64{0.5}
			case 2: // c0 + c1 = b0, r0 c0 + c1 = b1
				c = []float64{(b[0] - b[1]) / (1 - r[0]), (b[1] - r[0]*b[0]) / (1 - r[0])}
			case 3:
				var x mat.VecDense
				conditions := mat.NewDense(3, 3, []float64{1, 1, 1, r[0], r[1], 1, r[0] * r[0], r[1] * r[1], 1})
				if err := x.SolveVec(conditions, mat.NewVecDense(3, b)); err != nil {
					panic(err)
				}
				c = x.RawVector().Data
			}
			x = base
			for k := range p - 1 {
				x = combine([]float64{1, -big * c[k]}, x, d[k])
			}
			x = combine([]float64{1, -big * c[p-1], big * c[p-1]}, x, next, m[0])
			m = append([]vec{next}, m...)
		}
		return x, calls
	}
}
