package processes_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/processestest"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// together runs do as each of n processes.
func together(t *testing.T, n int, do func(w *processes.World) error) []error {
	t.Helper()
	job, errs := processestest.New(n), make([]error, n)
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() { errs[k] = do(job.World(k)) })
	}
	all.Wait()
	return errs
}

// TestSumIsInOrder: every process has the bits of x_{0,0} + x_{0,1} + x_{1,0} + …, whatever the length.
func TestSumIsInOrder(t *testing.T) {
	for _, c := range []struct{ size, terms, n int }{{1, 2, 5}, {2, 1, 1}, {2, 2, 7}, {3, 2, 1000}, {2, 2, 5_000_003}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, uint64(c.n)))
			x := make([][]float32, c.size*c.terms)
			for k := range x {
				for range c.n {
					x[k] = append(x[k], float32(rng.NormFloat64()*math.Exp(4*rng.NormFloat64())))
				}
			}
			want, other := slices.Clone(x[0]), slices.Clone(x[len(x)-1])
			for k := 1; k < len(x); k++ {
				for i := range want {
					want[i] += x[k][i]
					other[i] += x[len(x)-1-k][i]
				}
			}
			if c.n >= 1000 && slices.Equal(want, other) {
				t.Fatal("the order makes no difference here")
			}
			for k, err := range together(t, c.size, func(w *processes.World) error {
				own := x[w.Rank()*c.terms:][:c.terms]
				if err := processes.Sum(t.Context(), w, false, own...); err != nil {
					return err
				}
				if !slices.Equal(own[0], want) {
					return errors.New("other bits")
				}
				wide := []float64{float64(w.Rank()) / 3}
				if err := processes.Sum(t.Context(), w, false, wide); err != nil {
					return err
				}
				var sum float64
				for k := range c.size {
					sum += float64(k) / 3
				}
				if wide[0] != sum {
					return fmt.Errorf("float64: %v, want %v", wide[0], sum)
				}
				return nil
			}) {
				if err != nil {
					t.Errorf("process %d: %v", k, err)
				}
			}
		})
	}
}

// TestAgree: all go on, or none does, and each knows why.
func TestAgree(t *testing.T) {
	broke := errors.New("the disk is full")
	for _, c := range []struct {
		name string
		mine func(rank int) (digest uint64, err error)
		want [2]string // what the processes answer; empty: nothing
	}{
		{"ready", func(int) (uint64, error) { return 7, nil }, [2]string{}},
		{
			"other steps", func(rank int) (uint64, error) { return uint64(rank), nil },
			[2]string{"process 1 of 2 is about to do another step", "process 1 of 2 is about to do another step"},
		},
		{"failed", func(rank int) (uint64, error) {
			if rank == 1 {
				return 0, broke
			}
			return 7, nil
		}, [2]string{"process 1 of 2 has failed; its log says why", "the disk is full"}},
		{"ended", func(rank int) (uint64, error) {
			if rank == 0 {
				return 0, processes.ErrEnded
			}
			return 7, nil
		}, [2]string{processes.ErrEnded.Error(), "process 0 of 2 has ended"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			errs := together(t, 2, func(w *processes.World) error {
				digest, mine := c.mine(w.Rank())
				err := w.Agree(t.Context(), digest, mine)
				if w.Broken() {
					t.Error("all know of it")
				}
				if again := w.Agree(t.Context(), 7, nil); (err == nil) != (again == nil) {
					t.Errorf("after %v: %v", err, again)
				}
				return err
			})
			for k, err := range errs {
				if c.want[k] == "" && err != nil || c.want[k] != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want[k])) {
					t.Errorf("process %d: %v, want %q", k, err, c.want[k])
				}
			}
			var peer *processes.EndError
			if c.name == "ended" && !(errors.As(errs[1], &peer) && peer.Ended) {
				t.Errorf("%v does not say that it is an end", errs[1])
			}
		})
	}
}

// TestCompare names the fact that differs, with both values.
func TestCompare(t *testing.T) {
	for k, err := range together(t, 3, func(w *processes.World) error {
		if err := w.Compare(t.Context(), []processes.Fact{{"version", "1.0"}}); err != nil {
			return err
		}
		value := "abc"
		if w.Rank() == 2 {
			value = "abd"
		}
		return w.Compare(t.Context(), []processes.Fact{{"version", "1.0"}, {"data set", value}})
	}) {
		want := `process 2 of 3 has another data set than process 0: "abd", not "abc"`
		if err == nil || err.Error() != want {
			t.Errorf("process %d: %v", k, err)
		}
	}
}

// TestDeath: who waits for a process that dies is told so, and that nobody else knows.
func TestDeath(t *testing.T) {
	job := processestest.New(2)
	w, told := job.World(0), make(chan error)
	go func() { told <- w.Agree(t.Context(), 0, nil) }()
	job.Kill()
	err := <-told
	var lost *processes.EndError
	if !errors.As(err, &lost) || err.Error() != "process 0 of 2 has lost the others: a process was killed" || !w.Broken() {
		t.Errorf("%v", err)
	}
	if err := processes.Sum(t.Context(), w, false, []float32{1}); !errors.As(err, &lost) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestMeet: nobody leaves before all have come, also after an error that all know of.
func TestMeet(t *testing.T) {
	var here atomic.Int32
	together(t, 3, func(w *processes.World) error {
		var mine error
		if w.Rank() == 1 {
			mine = errors.New("it fails")
		}
		if err := w.Agree(t.Context(), 0, mine); err == nil {
			t.Error("all agree")
		}
		here.Add(1)
		err := w.Meet(t.Context())
		if n := here.Load(); err != nil || n != 3 {
			t.Errorf("process %d leaves when %d are here: %v", w.Rank(), n, err)
		}
		return nil
	})
}

// TestNoWorldIsOneProcess.
func TestNoWorldIsOneProcess(t *testing.T) {
	var w *processes.World
	if w.Rank() != 0 || w.Size() != 1 {
		t.Errorf("process %d of %d", w.Rank(), w.Size())
	}
}
