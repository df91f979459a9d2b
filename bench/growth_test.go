package bench

import (
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// TestMain is the command itself where a benchmark starts this executable again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestExponents: a power has its own exponent, and the top is that of the last two sizes.
func TestExponents(t *testing.T) {
	c := curve{Axis: "images", Request: "read"}
	for _, n := range []int{10, 100, 1000} {
		x := float64(n)
		costs := []cost{{CPU: 99, Peak: 1}, {CPU: 3e-4 * math.Pow(x, 1.5), Peak: 1 + x}, {CPU: 0, Peak: 2e9}}
		c.Points = append(c.Points, sizeCosts{Size: n, Costs: costs})
	}
	c.fit()
	if math.Abs(c.CPU.All-1.5) > 1e-12 || math.Abs(c.CPU.Top-1.5) > 1e-12 {
		t.Errorf("exponents %+v of a power of 1.5", c.CPU)
	}
	if top := math.Log10(1001.0 / 101); math.Abs(c.Memory.Top-top) > 1e-12 || !(c.Memory.All < top) {
		t.Errorf("exponents %+v of 1 + x, whose last is %v", c.Memory, top)
	}
	file := filepath.Join(t.TempDir(), "growth.csv")
	if err := (&growthReport{Curves: []curve{c}}).writeCSV(file); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) != 1+3*3 || strings.Join(lines[5][:4], " ") != "images read 100 1" {
		t.Errorf("%v, %v", lines, err)
	}
}

// TestRequestsOfGrowth: every axis changes the workload, and its requests succeed with paths of their own for classes
// and with subspaces.
func TestRequestsOfGrowth(t *testing.T) {
	plain := workload{side: 8, batch: 2, nfe: 3, classes: 3, knots: 6, images: 12}
	for _, a := range axes {
		w := plain
		a.set(&w, a.sizes[1])
		if w.side == plain.side && w.batch == plain.batch && w.nfe == plain.nfe && w.classes == plain.classes &&
			w.knots == plain.knots && w.images == plain.images {
			t.Errorf("%s changes nothing", a.name)
		}
	}
	dev, err := device.Open(device.Config{Plugin: "go"})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	perClass, bands := plain, plain
	perClass.perClass, bands.cuts = true, []int{2, 4}
	for _, w := range []workload{perClass, bands} {
		s, err := serveModel(t.Context(), dev, random(t, w.network()), engine.Config{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		requests, err := w.requests(t.Context(), s.clients[0])
		for _, name := range []string{sampleRequest, stepRequest, uploadRequest, readRequest} {
			if err == nil {
				err = requests[name](t.Context())
			}
		}
		if err := errors.Join(err, s.close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMemoryOfAProcess: what a process says of its memory arrives, and an order that fails is an error.
func TestMemoryOfAProcess(t *testing.T) {
	args := []string{"model", "--drive", "--network", smallest, "--batch", "2", "--device", "go"}
	r, err := measureMemory(t.Context(), args, []string{"forward"}, 2, func(int, int) {})
	if err != nil || len(r.Rows) != 1 || r.Batch != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if row := r.Rows[0]; row.Program != "forward" || !(row.Wall.Median > 0) || row.Running < 1<<20 {
		t.Errorf("%+v", row)
	}
	_, err = measureMemory(t.Context(), args, []string{"backward"}, 1, func(int, int) {})
	if err == nil || !strings.Contains(err.Error(), `got "backward"`) {
		t.Errorf("%v", err)
	}
}
