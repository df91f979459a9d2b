package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/gradcheck"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// image is an array [B, H, W, C].
type image struct {
	b, h, w, c int
	v          []float64
}

func newImage(b, h, w, c int) image { return image{b, h, w, c, make([]float64, b*h*w*c)} }

// at returns an entry, zero outside the image.
func (m image) at(b, y, x, c int) float64 {
	if y < 0 || y >= m.h || x < 0 || x >= m.w {
		return 0
	}
	return m.v[((b*m.h+y)*m.w+x)*m.c+c]
}

func (m image) each(f func(b, y, x, c int) float64) image {
	for i := range m.v {
		c, p := i%m.c, i/m.c
		m.v[i] = f(p/m.w/m.h, p/m.w%m.h, p%m.w, c)
	}
	return m
}

// TestResampler compares with the definition for EDM's filters and an unsymmetric one that shows which way round they
// are.
func TestResampler(t *testing.T) {
	dev := devicetest.PureGo(t)
	for _, filter := range [][]float64{{1, 1}, {1, 3, 3, 1}, {1, 2}, {1, 2, 3, 4, 5, 6}} {
		f, sum := slices.Clone(filter), 0.
		for _, v := range f {
			sum += v
		}
		for i := range f {
			f[i] /= sum
		}
		n, p := len(f), len(f)/2-1
		tap := func(k int) float64 {
			if k < 0 || k >= n {
				return 0
			}
			return f[k]
		}
		r := nn.NewResampler(filter)
		rng := rand.New(rand.NewPCG(1, 2))
		x := newImage(2, 4, 6, 2).each(func(_, _, _, _ int) float64 { return rng.NormFloat64() })
		halved := newImage(2, 2, 3, 2).each(func(b, y, col, c int) float64 {
			s := 0.
			for i := range n {
				for j := range n {
					s += f[i] * f[j] * x.at(b, 2*y+i-p, 2*col+j-p, c)
				}
			}
			return s
		})
		doubled := newImage(2, 8, 12, 2).each(func(b, y, col, c int) float64 {
			s := 0.
			for i := range x.h {
				for j := range x.w {
					s += 4 * tap(y-2*i+p) * tap(col-2*j+p) * x.at(b, i, j, c)
				}
			}
			return s
		})
		wide := newImage(2, 4+2*p, 6+2*p, 2).each(func(b, y, col, c int) float64 { return x.at(b, y-p, col-p, c) })
		for _, c := range []struct {
			name string
			x    image
			op   func(*nn.Node) *nn.Node
			want image
		}{
			{"down", x, r.Down, halved},
			{"up", x, r.Up, doubled},
			{"down padded", wide, r.DownPadded, halved},
		} {
			t.Run(fmt.Sprint(c.name, filter), func(t *testing.T) {
				x := devicetest.Input{Flat: c.x.v, Dims: []int{c.x.b, c.x.h, c.x.w, c.x.c}}
				got := devicetest.Compute(t, dev, "", func(in []*nn.Node) []*nn.Node { return []*nn.Node{c.op(in[0])} }, x)[0]
				if !floats.EqualApprox(got, c.want.v, 1e-12) {
					t.Errorf("got %v, want %v", got, c.want.v)
				}
				gradcheck.Check(t, dev, fmt.Sprint(c.name, filter), [][]int{{1, c.x.h, c.x.w, 1}},
					func(in []*nn.Node) *nn.Node { return c.op(in[0]) })
			})
		}
	}
}
