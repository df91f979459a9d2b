package frechet

import (
	"math"
	"slices"
	"sync"
	"testing"
)

// mirror is the layers of Responses by their definition, in float64 and pixel by pixel.
func mirror(x []float64, h, w, c int) (out []float64) {
	at := make([][][]float64, h) // [y][x][channel]
	for y := range at {
		at[y] = slices.Collect(slices.Chunk(x[y*w*c:(y+1)*w*c], c))
	}
	filters := filtersOf(c, 0)
	for layer, n := range widths {
		if layer > 0 {
			at = mirrorHalved(at)
		}
		in := len(at[0][0])
		next, sums := make([][][]float64, len(at)), make([]float64, n)
		for y := range at {
			for i := range at[y] {
				r := make([]float64, n)
				for k := range n {
					for q := range in {
						for tap := range 9 {
							if v, u := y+tap/3-1, i+tap%3-1; v >= 0 && v < len(at) && u >= 0 && u < len(at[v]) {
								r[k] += float64(filters[layer][(k*in+q)*9+tap]) * at[v][u][q]
							}
						}
					}
					r[k] = math.Abs(r[k])
					sums[k] += r[k]
				}
				next[y] = append(next[y], r)
			}
		}
		for _, s := range sums {
			out = append(out, s/float64(len(at)*len(at[0])))
		}
		at = next
	}
	return out
}

func mirrorHalved(at [][][]float64) [][][]float64 {
	out := make([][][]float64, len(at)/2)
	for y := range out {
		for i := range len(at[0]) / 2 {
			v := make([]float64, len(at[0][0]))
			for q := range v {
				v[q] = (at[2*y][2*i][q] + at[2*y][2*i+1][q] + at[2*y+1][2*i][q] + at[2*y+1][2*i+1][q]) / 4
			}
			var mean float64
			for _, a := range v {
				mean += a / float64(len(v))
			}
			for q := range v {
				v[q] -= mean
			}
			out[y] = append(out[y], v)
		}
	}
	return out
}

func measured(f Features, x []float64) []float64 {
	y := make([]float64, f.Dims)
	f.measure(x, y)
	return y
}

// TestResponsesAreTheirDefinition: of an image whose sides are odd, too, and from many goroutines at once.
func TestResponsesAreTheirDefinition(t *testing.T) {
	const h, w, c = 9, 12, 3
	f := Responses(h, w, c, 0)
	x := draw(1, 1, h*w*c, 0.1, 0.5)[0]
	want := mirror(x, h, w, c)
	if f.Dims != 72 || len(want) != f.Dims {
		t.Fatalf("%d responses, by definition %d", f.Dims, len(want))
	}
	first := measured(f, x)
	for i, v := range want {
		if math.Abs(first[i]-v) > 1e-5 {
			t.Errorf("response %d is %v, want %v", i, first[i], v)
		}
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if !slices.Equal(measured(f, x), first) {
					t.Error("another pass gives other bits")
				}
			}
		})
	}
	group.Wait()
}

// TestBanksHaveFiltersOfTheirOwn: their responses are no more alike than those of any two filters.
func TestBanksHaveFiltersOfTheirOwn(t *testing.T) {
	const h, w, c = 8, 8, 1
	x := draw(1, 1, h*w*c, 0.1, 0.5)[0]
	first, second := measured(Responses(h, w, c, 0), x), measured(Responses(h, w, c, 1), x)
	for i := range first {
		if first[i] == second[i] {
			t.Errorf("response %d is %g in both banks", i, first[i])
		}
	}
}

// TestResponsesOfLargeImages: cells of an image are seen as one pixel; images of one pixel or one row have responses.
func TestResponsesOfLargeImages(t *testing.T) {
	const side, c = 32, 2
	small := draw(2, 1, side*side*c, 0, 0.5)[0]
	large := make([]float64, 3*side*3*side*c)
	for y := range 3 * side {
		for i := range 3 * side {
			copy(large[(y*3*side+i)*c:][:c], small[(y/3*side+i/3)*c:])
		}
	}
	want, got := measured(Responses(side, side, c, 0), small), measured(Responses(3*side, 3*side, c, 0), large)
	for i, v := range want {
		if math.Abs(got[i]-v) > 1e-5 {
			t.Errorf("response %d is %v, want %v", i, got[i], v)
		}
	}
	for _, size := range [][2]int{{1, 1}, {1, 7}, {5, 1}} {
		for _, v := range measured(Responses(size[0], size[1], 1, 0), draw(3, 1, size[0]*size[1], 0, 1)[0]) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("a response of %v pixels is %v", size, v)
			}
		}
	}
}

// TestStandardFeaturesCountAlike: whatever the scales of d features, a shift of one by δ standard deviations is a
// distance of δ²/d; a feature that never varies is not seen.
func TestStandardFeaturesCountAlike(t *testing.T) {
	const d, delta = 3, 0.5
	scales := []float64{100, 1, 0.01, 0}
	f := Given("pixels", len(scales))
	images := draw(4, 500, len(scales), 0, 1)
	for _, x := range images {
		for i, s := range scales {
			x[i] *= s
		}
	}
	r, err := reference(f, images)
	if err != nil {
		t.Fatal(err)
	}
	spread := sampleOf(f, images).moments.Covariance()
	for i := range scales {
		shifted, want := make([][]float64, len(images)), delta*delta/d
		if scales[i] == 0 {
			want = 0
		}
		for n, x := range images {
			shifted[n] = slices.Clone(x)
			shifted[n][i] += delta*math.Sqrt(spread.At(i, i)) + 1e-9
		}
		if got := distance(r, shifted); math.Abs(got-want) > 1e-6 {
			t.Errorf("feature %d: distance %v, want %v", i, got, want)
		}
	}
}
