package frechet

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// draw returns n images of d values, mean + spread·N(0, 1).
func draw(seed uint64, n, d int, mean, spread float64) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, d)
		for k := range out[i] {
			out[i][k] = float64(mean + spread*rng.NormFloat64())
		}
	}
	return out
}

// changed returns copies of images, each value changed by f.
func changed(images [][]float64, f func(v float64) float64) [][]float64 {
	out := make([][]float64, len(images))
	for i, im := range images {
		for _, v := range im {
			out[i] = append(out[i], f(v))
		}
	}
	return out
}

// Images are at no distance from themselves, and a shift of all pixels by δ is one of δ²HWC over the variance, in the
// features that see it.
func TestDistanceIsExact(t *testing.T) {
	const h, w, c = 4, 5, 2
	images := draw(1, 60, h*w*c, 0, 0.1)
	r, err := reference(Frequencies(h, w, c), images)
	if err != nil {
		t.Fatal(err)
	}
	if got := distance(r, images); got > 1e-9 {
		t.Errorf("distance %v to itself", got)
	}
	shifted := changed(images, func(v float64) float64 { return v + 0.25 })
	want := 0.25 * 0.25 * h * w * c / r.total
	if got := distance(r, shifted); math.Abs(got-want) > 1e-6*want {
		t.Errorf("distance %v of a shift, want %v", got, want)
	}
	// Scaled by a, Σ_2 = a² Σ_1, the distance is (1 − a)² tr Σ_1 and the mean's.
	scaled := changed(images, func(v float64) float64 { return v * 0.5 })
	mean := mat.Norm(mat.NewVecDense(len(r.mean), r.mean), 2)
	want = 0.25 + 0.25*mean*mean/r.total
	if got := distance(r, scaled); math.Abs(got-want) > 1e-5 {
		t.Errorf("distance %v of half the images, want %v", got, want)
	}
}

// A flat image has no edges; one step has its height over the cell that holds it.
func TestEdges(t *testing.T) {
	f := Edges(16, 16, 1)
	x, y := make([]float64, 256), make([]float64, f.Dims)
	if f.Dims != 128 {
		t.Fatalf("%d features", f.Dims)
	}
	for i := range x {
		x[i] = 0.3
	}
	f.measure(x, y)
	if slices.Max(y) != 0 {
		t.Errorf("a flat image has edges %v", y)
	}
	for row := range 16 {
		for k := 7; k < 16; k++ {
			x[row*16+k] = 0.8
		}
	}
	f.measure(x, y)
	for i, v := range y { // each cell has 2×2 pixels, one of each row borders the step
		want := 0.0
		if i >= 64 && i%8 == 3 {
			want = 0.25
		}
		if math.Abs(v-want) > 1e-12 {
			t.Errorf("edge %d is %v, want %v", i, v, want)
		}
	}
}

// A normal law with the data's moments is as good as the data to the frequencies, and not to the edges.
func TestEdgesSeeMoreThanMoments(t *testing.T) {
	const h, w, n = 8, 8, 3000
	rng := rand.New(rand.NewPCG(3, 4))
	var data, normal [][]float64
	for range n {
		a, b := make([]float64, h*w), make([]float64, h*w)
		sign := float64(rng.IntN(2)*2 - 1)
		for i := range a {
			a[i] = 0.4 * sign * float64(rng.IntN(2)*2-1)
			b[i] = 0.4 * float64(rng.NormFloat64())
		}
		data, normal = append(data, a), append(normal, b)
	}
	var found [2]float64
	for i, f := range []Features{Frequencies(h, w, 1), Edges(h, w, 1)} {
		r, err := reference(f, data)
		if err != nil {
			t.Fatal(err)
		}
		found[i] = distance(r, normal)
	}
	if found[0] > 0.1 || found[1] < 2*found[0] {
		t.Errorf("a normal law is %v away in frequencies and %v in edges", found[0], found[1])
	}
}

// TestUnbounded: of images what lies beyond [−1, 1] is not seen, of fields it is.
func TestUnbounded(t *testing.T) {
	images := draw(9, 40, 12, 0, 2)
	scaled := changed(images, func(v float64) float64 {
		if v*v > 1 {
			return 3 * v
		}
		return v
	})
	for _, unbounded := range []bool{false, true} {
		f := Frequencies(3, 4, 1)
		f.Unbounded = unbounded
		r, err := reference(f, images)
		if err != nil {
			t.Fatal(err)
		}
		if d := distance(r, scaled); (d > 0.5) != unbounded {
			t.Errorf("unbounded %v: a distance of %g", unbounded, d)
		}
	}
}

func TestReferenceRefuses(t *testing.T) {
	f := Frequencies(2, 2, 1)
	for name, images := range map[string][][]float64{"one": {{1, 2, 3, 4}}, "alike": {{0, 0, 0, 0}, {0, 0, 0, 0}}} {
		if _, err := reference(f, images); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	r, err := reference(f, draw(1, 9, 4, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := distance(r, draw(1, 1, 4, 0, 1)); !math.IsNaN(got) {
		t.Errorf("one image is at %v", got)
	}
}

// TestExcess: images of the reference's own law are at no distance from it, however few they are, when the distance of
// as many of its images is subtracted; what remains of others hardly depends on their number.
func TestExcess(t *testing.T) {
	const h, w, c = 4, 4, 1
	f := Frequencies(h, w, c)
	images, other := draw(1, 4000, h*w*c, 0, 0.2), draw(2, 4000, h*w*c, 0, 0.22)
	var parts []*Sample
	for part := range slices.Chunk(images, 500) {
		parts = append(parts, sampleOf(f, part))
	}
	r, err := ReferenceOf(parts...)
	if err != nil {
		t.Fatal(err)
	}
	far := distance(r, other) - r.bias/4000
	for _, n := range []int{50, 200} {
		var own, others float64
		for part := range slices.Chunk(draw(3, 20*n, h*w*c, 0, 0.2), n) {
			own += distance(r, part) / 20
		}
		for part := range slices.Chunk(other[:20*n], n) {
			others += distance(r, part) / 20
		}
		bias := r.bias / float64(n)
		if math.Abs(own-bias) > 0.1*bias || math.Abs(others-bias-far) > 0.2*bias {
			t.Errorf("%d images are at %g, others at %g, with a bias of %g and a distance of %g", n, own, others, bias, far)
		}
		x := distance(r, other[:n]) - bias
		if got, want := r.Excess(sampleOf(f, other[:n])), (x+math.Sqrt(x*x+bias*bias/25))/2; math.Abs(got-want) > 1e-12 {
			t.Errorf("an excess of %g, want %g", got, want)
		}
	}
	if whole, err := reference(f, images); err != nil || whole.Excess(sampleOf(f, other)) != distance(whole, other) {
		t.Errorf("the excess over a reference of one part is not its distance: %v", err)
	}
}

func sampleOf(f Features, images [][]float64) *Sample {
	s := f.NewSample()
	for _, im := range images {
		s.Add(im)
	}
	return s
}

func reference(f Features, images [][]float64) (*Reference, error) {
	return ReferenceOf(sampleOf(f, images))
}

// distance returns the distance of images to a reference.
func distance(r *Reference, images [][]float64) float64 {
	return r.Distance(sampleOf(r.features, images))
}

// TestSampleOfParts: images one by one, all at once, and as float32 are one sample, to the bit; merged parts are the
// whole.
func TestSampleOfParts(t *testing.T) {
	const h, w, c, n = 5, 6, 2, 600
	images := draw(7, n, h*w*c, 0.2, 0.6)
	var narrow []float32
	for _, im := range images {
		for k, v := range im {
			narrow = append(narrow, float32(v))
			im[k] = float64(float32(v))
		}
	}
	for _, f := range []Features{Frequencies(h, w, c), Edges(h, w, c)} {
		r, err := reference(f, draw(8, 50, h*w*c, 0, 0.5))
		if err != nil {
			t.Fatal(err)
		}
		want := distance(r, images) // one by one
		once, float, merged := f.NewSample(), f.NewSample(), f.NewSample()
		once.Add(slices.Concat(images...))
		float.AddFloat32(narrow)
		if a, b := r.Distance(once), r.Distance(float); a != want || b != want {
			t.Errorf("%s: %v at once and %v as float32, want %v", f.Name, a, b, want)
		}
		for _, part := range [][][]float64{images[:1], images[1:300], images[300:]} {
			merged.Merge(sampleOf(f, part))
		}
		if got := r.Distance(merged); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: %v of merged parts, want %v", f.Name, got, want)
		}
	}
}

// TestScores: the scores of parts that nobody has read yet, on all cores, are those of the images left.
func TestScores(t *testing.T) {
	const h, w, c, n, each = 4, 4, 1, 8, 50
	all := draw(9, n*each, h*w*c, 0.2, 0.5)
	r, err := reference(Edges(h, w, c), draw(10, 100, h*w*c, 0, 0.5))
	if err != nil {
		t.Fatal(err)
	}
	var want []float64 // without each part
	for left := range n {
		s := r.features.NewSample()
		for part := range n {
			if part != left {
				s.Merge(sampleOf(r.features, all[part*each:(part+1)*each]))
			}
		}
		want = append(want, Score([]float64{r.Excess(s)}))
	}
	for range 20 {
		p := PartsLike([]*Reference{r}, n)
		for i := range p {
			p[i][0].Add(slices.Concat(all[i*each : (i+1)*each]...))
		}
		if got := p.Scores([]*Reference{r}); !slices.Equal(got, want) {
			t.Fatalf("scores %v, want %v", got, want)
		}
	}
}
