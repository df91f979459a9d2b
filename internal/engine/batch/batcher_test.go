package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// batchSize is the size of the tests' batches.
const batchSize = 8

// network returns a random network on a device.
func network(t *testing.T, dev *device.Device) sampler.Network {
	t.Helper()
	net, values := foldertest.Network(t, foldertest.Tiny, 1)
	on, err := kernels.NewModel(dev, net, nil)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := on.Upload(values)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { weights.Release(); on.Close() })
	return sampler.Network{Model: on, Weights: weights}
}

// Within batches of one size a row's values are the same to the bit wherever it lies and whatever lies beside it. That
// is what lets requests share a batch without changing each other's samples. The arithmetic is Go's: on some
// processors XLA rounds the last bits of a row by its place.
func TestRowsAreIndependent(t *testing.T) {
	net := network(t, devicetest.PureGo(t))
	size, r := net.Model.Pixels(), rand.New(rand.NewPCG(1, 2))
	x, g, labels := noisy(r, batchSize, size)
	_, want, _, err := net.Model.Denoise(t.Context(), net.Weights, x, g, labels)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		y, h, l := noisy(r, batchSize, size)
		kept := map[int]int{} // row of y → row of x
		for to, from := range r.Perm(batchSize) {
			if r.IntN(2) == 0 {
				copy(y[to*size:(to+1)*size], x[from*size:])
				h[to], l[to], kept[to] = g[from], labels[from], from
			}
		}
		_, got, _, err := net.Model.Denoise(t.Context(), net.Weights, y, h, l)
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

// An evaluation that is cancelled while it waits leaves the others that wait to theirs.
func TestCancelledAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(NewQueue(1), false)
		if err := b.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		part := sampler.Part{Rows: 2, Size: batchSize, Alone: func(context.Context) error { return nil }}
		begin := func(ctx context.Context) <-chan error {
			end := make(chan error, 1)
			go func() { end <- b.Evaluate(ctx, sampler.Network{}, part) }()
			synctest.Wait() // until it waits for the slot
			return end
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancelled, other := begin(ctx), begin(t.Context())
		cancel()
		if err := <-cancelled; !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled one ended with %v", err)
		}
		b.Release()
		if err := <-other; err != nil {
			t.Errorf("the other ended with %v", err)
		}
	})
}

// Nobody takes an evaluation for made whose evaluator has panicked.
func TestPanicLosesTheBatch(t *testing.T) {
	net := network(t, devicetest.Open(t))
	x, g, labels := noisy(rand.New(rand.NewPCG(5, 6)), batchSize, net.Model.Pixels())
	nothing := func(context.Context, []float32, []float32, []float32) error { return nil }
	p := sampler.Evaluation(net, sampler.Bucket{N: 2, Size: batchSize}, x, g, labels, nothing)
	first := &pending{Part: p, done: make(chan struct{}), err: errLost}
	p.Input = func(context.Context) ([]float32, []float64, []int32, error) { panic("no rows") }
	second := &pending{Part: p, done: make(chan struct{}), err: errLost}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		New(NewQueue(1), false).run(t.Context(), net, []*pending{first, second})
	}()
	for _, r := range []*pending{first, second} {
		<-r.done
		if !errors.Is(r.err, errLost) {
			t.Errorf("a part ended with %v", r.err)
		}
	}
}

// One part's error is its own: of one that has no rows, and of one whose rows spoil the whole batch.
func TestErrorsAreOnesOwn(t *testing.T) {
	net := network(t, devicetest.Open(t))
	failure, spoiled := errors.New("failure"), errors.New("spoiled")
	r := rand.New(rand.NewPCG(3, 4))
	waiting := func(inputs, lone error) (_ *pending, values *int) { // of which input, or alone, fails
		values = new(int)
		x, g, labels := noisy(r, batchSize, net.Model.Pixels())
		if lone != nil {
			labels[0] = 99 // which the network does not know
		}
		count := func(_ context.Context, denoised, _, _ []float32) error { *values = len(denoised); return nil }
		p := sampler.Evaluation(net, sampler.Bucket{N: 2, Size: batchSize}, x, g, labels, count)
		if inputs != nil {
			p.Input = func(context.Context) ([]float32, []float64, []int32, error) { return nil, nil, nil, inputs }
		}
		if lone != nil {
			p.Alone = func(context.Context) error { return lone }
		}
		return &pending{Part: p, done: make(chan struct{}), err: errLost}, values
	}
	for _, spoils := range []error{nil, spoiled} {
		good, values := waiting(nil, nil)
		bad, _ := waiting(failure, nil)
		worse, _ := waiting(nil, spoils)
		New(NewQueue(1), false).run(t.Context(), net, []*pending{good, bad, worse})
		if good.err != nil || !errors.Is(bad.err, failure) || !errors.Is(worse.err, spoils) {
			t.Errorf("errors are %v, %v, %v", good.err, bad.err, worse.err)
		}
		if *values != 2*net.Model.Pixels() {
			t.Errorf("the good one has %d values", *values)
		}
	}
}
