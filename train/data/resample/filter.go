package resample

import "math"

// Filter is an interpolation kernel; it is stretched by in/out where an image shrinks.
type Filter struct {
	support float64 // half its width at scale 1
	weight  func(x float64) float64
}

// The filters, by Pillow's names.
var (
	// Box averages the pixels that fall into one: 1 for −½ < x ≤ ½.
	Box = Filter{0.5, func(x float64) float64 {
		if -0.5 < x && x <= 0.5 {
			return 1
		}
		return 0
	}}
	// Bicubic is Keys' kernel with a = −½.
	Bicubic = Filter{2, func(x float64) float64 {
		const a = -0.5
		switch x = math.Abs(x); {
		case x < 1:
			return ((a+2)*x-(a+3))*x*x + 1
		case x < 2:
			return (((x-5)*x+8)*x - 4) * a
		}
		return 0
	}}
	// Lanczos is sinc(x)·sinc(x/3) for −3 ≤ x < 3.
	Lanczos = Filter{3, func(x float64) float64 {
		if -3 <= x && x < 3 {
			return sinc(x) * sinc(x/3)
		}
		return 0
	}}
)

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// window is the part of a line that one resized value is made of.
type window struct {
	from   int
	weight []int32 // in units of 2^−precision; they sum to about 1
}

// precision is the number of binary places of a weight: a byte, two bits of headroom and
// the weight fill 32 bits.
const precision = 32 - 8 - 2

// windows gives the windows that resize a line from n values to m.
func (f Filter) windows(n, m int) []window {
	scale := float64(n) / float64(m)
	stretch := max(scale, 1)
	support := f.support * stretch
	out := make([]window, m)
	for i := range out {
		centre := (float64(i) + 0.5) * scale
		from, to := max(int(centre-support+0.5), 0), min(int(centre+support+0.5), n)
		weights := make([]float64, to-from)
		var sum float64
		for k := range weights {
			weights[k] = f.weight((float64(from+k) - centre + 0.5) * (1 / stretch))
			sum += weights[k]
		}
		out[i] = window{from, make([]int32, len(weights))}
		for k, w := range weights {
			if sum != 0 {
				w /= sum
			}
			out[i].weight[k] = int32(w*(1<<precision) + math.Copysign(0.5, w))
		}
	}
	return out
}
