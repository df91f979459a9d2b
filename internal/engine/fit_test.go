package engine

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/devicetest"
)

// Coefficients are fitted to a model's trajectories, on a schedule without a start, and serve the solver "fitted".
func TestFittedSchedule(t *testing.T) {
	dir := t.TempDir()
	small := strings.Replace(tiny, `"img_resolution":8`, `"img_resolution":4`, 1)
	writeModel(t, filepath.Join(dir, "models", "tiny"), small, 1)
	e := reopen(t, dir, Config{Device: devicetest.Open(t)})
	putSmoothOf(t, e, "smooth", 96, 4)
	makeGaussian(t, e, `{"name":"path","kind":"geodesic","model":"tiny","dataset":"smooth","statistics":true}`)
	made := makeGaussian(t, e,
		`{"name":"fit","kind":"fit","model":"tiny","schedule":"path","nfe":3,"samples":16,"seed":2}`)
	if f := made.Fit; f == nil || f.NFE != 3 || f.Samples != 16 || !(f.Fitted > 0 && f.Fitted < f.Local) {
		t.Fatalf("made %+v with %+v", made, made.Fit)
	}
	sample := func(solver string) []float32 {
		return column[float32](get(t, e, "Sample",
			`{"model":"tiny","n":2,"nfe":3,"schedule":"fit","dtype":"float32","solver":"`+solver+`"}`), "sample")
	}
	if fitted, local := sample("fitted"), sample("local"); fitted[0] == local[0] {
		t.Errorf("both solvers give %g", fitted[0])
	}
}
