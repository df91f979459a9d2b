package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Within batches of one size a row's values are the same to the bit wherever it lies and whatever lies beside it. That
// is what lets requests share a batch without changing each other's samples.
func TestRowsAreIndependent(t *testing.T) {
	e := open(t)
	m, on := networkOf(t, e)
	size, r := on.on.Pixels(), rand.New(rand.NewPCG(1, 2))
	x, g, labels := noisy(r, smallBucket, size)
	_, want, _, err := on.on.Denoise(t.Context(), m.weights, x, g, labels)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		y, h, l := noisy(r, smallBucket, size)
		kept := map[int]int{} // row of y → row of x
		for to, from := range r.Perm(smallBucket) {
			if r.IntN(2) == 0 {
				copy(y[to*size:(to+1)*size], x[from*size:])
				h[to], l[to], kept[to] = g[from], labels[from], from
			}
		}
		_, got, _, err := on.on.Denoise(t.Context(), m.weights, y, h, l)
		if err != nil {
			t.Fatal(err)
		}
		for to, from := range kept {
			if !slices.Equal(got[to*size:(to+1)*size], want[from*size:(from+1)*size]) {
				t.Fatalf("row %d differs when it lies in row %d among others", from, to)
			}
		}
	}
}

// networkOf gives the model "tiny" and its network without a basis.
func networkOf(t *testing.T, e *Engine) (*model, network) {
	t.Helper()
	m, err := e.modelNamed("tiny")
	if err != nil {
		t.Fatal(err)
	}
	on, err := e.plain(m)
	if err != nil {
		t.Fatal(err)
	}
	return m, network{on, m.weights}
}

func noisy(r *rand.Rand, n, size int) (x []float32, g []float64, labels []int32) {
	x, g, labels = make([]float32, n*size), make([]float64, n), make([]int32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for i := range g {
		g[i], labels[i] = 4*r.Float64(), int32(r.IntN(4)-1)
	}
	return x, g, labels
}

// crowd runs requests at once on one seat, which is given free when all of them wait for it.
func crowd(t *testing.T, e *Engine, bodies []string, run func(i int, job *api.Job)) {
	t.Helper()
	e.turns = newTurns(1)
	e.joint.turns = e.turns
	if err := e.turns.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, body := range bodies {
		job, err := prepare(t.Context(), e, "Sample", body)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { run(i, job) })
	}
	waitFor(t, func() bool { n, _ := e.turns.load(); return n == len(bodies) })
	e.turns.release()
	all.Wait()
	if n, _ := e.turns.load(); n != 0 || len(e.joint.stops) != 0 || e.turns.free != 1 {
		t.Errorf("%d wait, %d networks are waited for, %d seats are free", n, len(e.joint.stops), e.turns.free)
	}
}

// Requests that were evaluated together get the bytes that each gets alone, whatever they have in common but the network.
func TestTogetherAsAlone(t *testing.T) {
	dir := t.TempDir()
	writeModel(t, filepath.Join(dir, "models", "tiny"), tiny, 1)
	alone, e := reopen(t, dir, Config{Apart: true}), reopen(t, dir, Config{})
	var bodies []string
	for i, more := range []string{`"steps":4`, `"nfe":9,"solver":"ab"`, `"steps":5,"solver":"dpmpp2m","every":2`, `"steps":3,"S_churn":2`, `"nfe":6,"solver":"unipc"`, `"steps":4`} {
		bodies = append(bodies, fmt.Sprintf(`{"model":"tiny","n":%d,"seed":%d,"dtype":"float32",%s}`, 1+i%4, 10*i, more))
	}
	got := make([]*rows, len(bodies))
	crowd(t, e, bodies, func(i int, job *api.Job) {
		var err error
		if got[i], err = collect(t.Context(), job); err != nil {
			t.Error(err)
		}
	})
	if e.joint.count.Load() < 5 {
		t.Errorf("%d evaluations were made in another's turn; this test wants some", e.joint.count.Load())
	}
	for i, body := range bodies {
		if want := get(t, alone, "Sample", body); !reflect.DeepEqual(got[i].cols, want.cols) {
			t.Errorf("%s: together it gave other bytes than alone", body)
		}
	}
	if n := alone.joint.count.Load(); n != 0 {
		t.Errorf("%d evaluations were joined where none should be", n)
	}
}

// Who gives up leaves the others alone.
func TestOneOfSeveralGivesUp(t *testing.T) {
	e := open(t)
	const body = `{"model":"tiny","n":2,"steps":30,"seed":%d}`
	bodies := []string{fmt.Sprintf(body, 0), fmt.Sprintf(body, 10), fmt.Sprintf(body, 20), fmt.Sprintf(body, 30)}
	crowd(t, e, bodies, func(i int, job *api.Job) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stages := 0
		r, err := collectUntil(ctx, job, func(ev api.Event) {
			if stages++; i%2 == 0 && ev.Meta["event"] == "progress" {
				cancel()
			}
		})
		switch {
		case i%2 == 0:
			wantCode(t, "cancelled", err, api.Cancelled)
		case err != nil || r.n != 2:
			t.Errorf("beside one who gave up: %d rows, %v", r.n, err)
		}
	})
}

// broken is a part that fails in its own way.
type broken struct {
	denoisePart
	gives error // give fails with this
	lone  error // alone fails with this
}

func (b *broken) give(ctx context.Context) ([]float32, []float64, []int32, error) {
	x, g, labels, err := b.denoisePart.give(ctx)
	return x, g, labels, errors.Join(err, b.gives)
}

func (b *broken) alone(ctx context.Context) error {
	if b.lone != nil {
		return b.lone
	}
	return b.denoisePart.alone(ctx)
}

// panicking is a part that panics when it is to give its rows.
type panicking struct{ denoisePart }

func (*panicking) give(context.Context) ([]float32, []float64, []int32, error) { panic("no rows") }

// Nobody takes an evaluation for made whose driver has panicked.
func TestPanicLosesTheCrew(t *testing.T) {
	e := open(t)
	m, net := networkOf(t, e)
	x, g, labels := noisy(rand.New(rand.NewPCG(5, 6)), smallBucket, net.on.Pixels())
	part := denoisePart{on: net.on, weights: m.weights, n: 2, x: x, g: g, labels: labels}
	first := &ride{part: &part, done: make(chan struct{}), err: errLost}
	second := &ride{part: &panicking{part}, done: make(chan struct{}), err: errLost}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		e.joint.drive(t.Context(), net, []*ride{first, second})
	}()
	for _, r := range []*ride{first, second} {
		<-r.done
		if !errors.Is(r.err, errLost) {
			t.Errorf("a ride ended with %v", r.err)
		}
	}
}

// One part's error is its own: of one that cannot give its rows, and of one whose rows spoil the whole batch.
func TestErrorsAreOnesOwn(t *testing.T) {
	e := open(t)
	m, net := networkOf(t, e)
	failure, spoiled := errors.New("failure"), errors.New("spoiled")
	r := rand.New(rand.NewPCG(3, 4))
	rider := func(gives, lone error) *ride {
		x, g, labels := noisy(r, smallBucket, net.on.Pixels())
		if lone != nil {
			labels[0] = 99 // which the network does not know
		}
		p := &broken{denoisePart: denoisePart{on: net.on, weights: m.weights, n: 2, x: x, g: g, labels: labels}, gives: gives, lone: lone}
		return &ride{part: p, done: make(chan struct{}), err: errLost}
	}
	for _, spoils := range []error{nil, spoiled} {
		good, bad, worse := rider(nil, nil), rider(failure, nil), rider(nil, spoils)
		e.joint.drive(t.Context(), net, []*ride{good, bad, worse})
		if good.err != nil || !errors.Is(bad.err, failure) || !errors.Is(worse.err, spoils) {
			t.Errorf("errors are %v, %v, %v", good.err, bad.err, worse.err)
		}
		if out := good.part.(*broken).out; len(out[0]) != 2*net.on.Pixels() {
			t.Errorf("the good one has %d values", len(out[0]))
		}
	}
}
