package basis

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// planes draws n planes of h×w whose directions have falling variances, about a mean that is large beside them.
func planes(seed uint64, n, h, w int) [][]float64 {
	d := h * w
	axes := orthonormal(seed, d, d)
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, d)
		for p := range d {
			out[i][p] = 50 + float64(p%3)
		}
		for a, c := range random(seed+7+uint64(i), d) {
			for p, v := range axes[a] {
				out[i][p] += c * v * math.Pow(0.8, float64(a))
			}
		}
	}
	return out
}

func gather(h, w int, all [][]float64) *Moments {
	m := NewMoments(h, w)
	for _, x := range all {
		m.Add(x)
	}
	return m
}

func components(t *testing.T, m *Moments, k int) *Components {
	t.Helper()
	c, err := m.Components(k)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The streamed components are the right singular vectors of the centred table of planes, s²/n their variances.
func TestComponentsAgainstSVD(t *testing.T) {
	const n, h, w, k = 700, 3, 5, 6 // blocks of 256, 256 and 188
	all := planes(1, n, h, w)
	c := components(t, gather(h, w, all), k)
	centred := mat.NewDense(n, h*w, slices.Concat(all...))
	for p := range h * w {
		var mean float64
		for i := range n {
			mean += centred.At(i, p) / n
		}
		for i := range n {
			centred.Set(i, p, centred.At(i, p)-mean)
		}
	}
	var svd mat.SVD
	if !svd.Factorize(centred, mat.SVDThin) {
		t.Fatal("no singular values")
	}
	var v mat.Dense
	svd.VTo(&v)
	s := svd.Values(nil)
	var total float64
	for _, x := range s {
		total += x * x / n
	}
	if math.Abs(c.Total/total-1) > 1e-10 {
		t.Errorf("total variance %v, want %v", c.Total, total)
	}
	for i := range k {
		if want := s[i] * s[i] / n; math.Abs(c.Variances[i]/want-1) > 1e-10 {
			t.Errorf("variance %d is %v, want %v", i, c.Variances[i], want)
		}
		want := mat.Col(nil, i, &v)
		TurnUpright(want)
		if d := gap(c.Vectors[i], want); d > 1e-9 {
			t.Errorf("vector %d is off by %.1e", i, d)
		}
	}
	if share := c.Share(); !(share > 0.8 && share < 1) {
		t.Errorf("%d of %d components hold %v of the variance", k, h*w, share)
	}
}

// Neither the order of the planes nor how they are parted among moments that are merged later matters.
func TestMomentsOrder(t *testing.T) {
	all := planes(2, 600, 3, 4)
	whole := gather(3, 4, all)
	mixed := slices.Clone(all)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	merged := NewMoments(3, 4)
	for _, part := range [][][]float64{all[:1], all[1:1], all[1:300], all[300:]} {
		merged.Merge(gather(3, 4, part))
	}
	want := components(t, whole, 5)
	for name, m := range map[string]*Moments{"shuffled": gather(3, 4, mixed), "merged": merged} {
		if m.N() != 600 || gap(m.Mean(), whole.Mean()) > 1e-11 {
			t.Errorf("%s: %d planes, mean off by %.1e", name, m.N(), gap(m.Mean(), whole.Mean()))
		}
		got := components(t, m, 5)
		for i := range got.Vectors {
			if d := gap(got.Vectors[i], want.Vectors[i]); d > 1e-10 {
				t.Errorf("%s: vector %d is off by %.1e", name, i, d)
			}
		}
	}
}

// A mean a million times the spread costs no more than the digits it takes in each plane.
func TestMomentsAreStable(t *testing.T) {
	near, far := planes(5, 400, 2, 3), planes(5, 400, 2, 3)
	for i := range far {
		for p := range far[i] {
			far[i][p] += 1e6
		}
	}
	a, b := components(t, gather(2, 3, near), 3), components(t, gather(2, 3, far), 3)
	for i := range a.Vectors {
		if d := gap(a.Vectors[i], b.Vectors[i]); d > 1e-7 {
			t.Errorf("vector %d is off by %.1e", i, d)
		}
	}
}

// The projector of principal components keeps more variance than any other of its rank, here the DCT's and random
// ones'.
func TestComponentsKeepMost(t *testing.T) {
	const h, w, k = 4, 4, 4
	m := gather(h, w, planes(6, 300, h, w))
	c := components(t, m, k)
	kept := func(rows [][]float64) (sum float64) {
		for i := range h * w { // Σ_r ⟨r, C r⟩
			for j := range h * w {
				a, b := min(i, j), max(i, j)
				for _, r := range rows {
					sum += r[i] * r[j] * m.scatter.Data[a*h*w+b] / float64(m.n)
				}
			}
		}
		return sum
	}
	most := kept(c.Vectors)
	if want := c.Share() * c.Total; math.Abs(most/want-1) > 1e-10 {
		t.Errorf("the components keep %v, Share says %v", most, want)
	}
	dct := must(t)(DCT(h, w, k))
	v, _ := dct.Vectors(Shared)
	for name, rows := range map[string][][]float64{
		"dct":    slices.Collect(slices.Chunk(v, h*w)),
		"random": orthonormal(8, k, h*w),
	} {
		if kept(rows) >= most {
			t.Errorf("%s keeps %v of %v", name, kept(rows), most)
		}
	}
}

// Three planes vary in two dimensions; the rest is the lowest of the DCT beside them.
func TestFewPlanes(t *testing.T) {
	all := planes(9, 3, 4, 4)
	c := components(t, gather(4, 4, all), 6)
	if _, err := Dense(4, 4, map[int][][]float64{Shared: c.Vectors}); err != nil {
		t.Fatal(err)
	}
	if c.Variances[1] <= 0 || c.Variances[2] != 0 || math.Abs(c.Share()-1) > 1e-9 {
		t.Errorf("variances %v, share %v", c.Variances, c.Share())
	}
	residue := slices.Repeat([]float64{1}, 16) // the constant function lies in P_1
	for _, v := range c.Vectors {
		p := dot(v, slices.Repeat([]float64{1}, 16))
		for i := range residue {
			residue[i] -= p * v[i]
		}
	}
	if norm(residue) > 1e-12 {
		t.Errorf("the constant is outside P_1 by %.1e", norm(residue))
	}
	one := components(t, gather(4, 4, all[:1]), 4)
	dct := must(t)(DCT(4, 4, 4))
	v, _ := dct.Vectors(Shared)
	for i := range 4 { // (0,0), (0,1), (1,0), (1,1), as the DCT orders its own
		if gap(one.Vectors[i], v[i*16:(i+1)*16]) > 1e-12 {
			t.Errorf("one plane: vector %d is not the DCT's", i)
		}
	}
	if one.Share() != 0 {
		t.Errorf("one plane has variance %v", one.Total)
	}
	// However many are asked for, down to one dimension less than all.
	if all := components(t, gather(4, 4, all), 15); len(all.Vectors) != 15 {
		t.Errorf("%d vectors", len(all.Vectors))
	}
}

func TestSigns(t *testing.T) {
	for _, q := range []struct{ v, want []float64 }{
		{[]float64{1, -3}, []float64{-1, 3}},
		{[]float64{-2, 2}, []float64{2, -2}},
		{[]float64{2, -2 - 1e-12}, []float64{2, -2 - 1e-12}},
		{[]float64{0, 0}, []float64{0, 0}},
	} {
		got := slices.Clone(q.v)
		if TurnUpright(got); !slices.Equal(got, q.want) {
			t.Errorf("%v became %v, want %v", q.v, got, q.want)
		}
	}
}

func TestComponentsRefused(t *testing.T) {
	good := gather(2, 3, planes(1, 5, 2, 3))
	nan := gather(2, 3, [][]float64{{1, 2, math.NaN(), 4, 5, 6}})
	for _, q := range []struct {
		m    *Moments
		k    int
		says string
	}{
		{good, 0, "k is 0"},
		{good, 6, "1 … 5"},
		{NewMoments(2, 3), 2, "no images"},
		{nan, 2, "not finite"},
	} {
		_, err := q.m.Components(q.k)
		var bad *Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), q.says) {
			t.Errorf("k = %d: %v, want %q", q.k, err, q.says)
		}
	}
}
