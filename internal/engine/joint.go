package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anisoflight/anisoflight/kernels"
)

// joint makes evaluations of one network together that wait at the same time. Whoever's turn comes takes along, as far as
// there is room in the batch, what waits for a turn with the same network. What is taken along gives its place in the queue
// up, so others' turns come no later. Nobody waits for company; but no network has more than a few of these turns at a time,
// since more would only share the processors, and what waits meanwhile goes together.
//
// On a CPU a padded row costs as much as a true one, so the small batches are filled. A row's values do not depend, to the
// bit, on the rows beside it nor on its place (TestRowsAreIndependent), so that company changes no sample. On an accelerator,
// where a large batch costs little more than a small one, the large ones are filled; the size of a batch changes the rounding.
type joint struct {
	turns turns
	room  int           // rows of a batch to fill; 0: every evaluation goes alone
	count atomic.Uint64 // evaluations taken along by another

	mu    sync.Mutex
	stops map[network]*stop
}

// lanes is how many evaluations of one network, of less than a full batch, may be under way or ask for a turn at a time: one
// that computes, and one whose host prepares the next.
const lanes = 2

// stop is where the rides with one network wait. It is there as long as anybody uses it.
type stop struct {
	lanes turns
	rides []*ride // that nobody has taken yet, in the order in which they came
	users int
}

// network is what evaluations must have in common.
type network struct {
	on      *kernels.Model
	weights *kernels.Weights
}

// part is a number of rows to be evaluated. Its methods are called during a turn at the device, from one goroutine at a time.
type part interface {
	rows() int
	// alone evaluates the rows and uses the result.
	alone(ctx context.Context) error
	// give gives the rows: images [n, H, W, C], variances [n·J] and labels [n].
	give(ctx context.Context) (x []float32, g []float64, labels []int32, err error)
	// use takes the evaluation of the rows that give gave.
	use(ctx context.Context, denoised, flow, raw []float32) error
}

// ride is a part that waits for a turn, its own or another's.
type ride struct {
	part
	leave context.CancelFunc // the queues for a lane and a turn
	taken bool               // by whoever evaluates it; guarded by joint.mu
	done  chan struct{}      // closed when it has been evaluated
	err   error              // of that; errLost until then
}

// errLost is what a ride ends with whose driver has panicked.
var errLost = errors.New("the joint evaluation was lost")

// Joined counts the evaluations that were made in another's turn.
func (e *Engine) Joined() uint64 { return e.joint.count.Load() }

// evaluate evaluates p, alone or with others. It returns when p is not in use any more, also when ctx has ended before.
func (j *joint) evaluate(ctx context.Context, net network, p part) error {
	room := j.roomFor(net)
	if p.rows() >= room {
		return j.turns.take(ctx, func() error { return p.alone(ctx) })
	}
	queue, leave := context.WithCancel(ctx)
	defer leave()
	r := &ride{part: p, leave: leave, done: make(chan struct{}), err: errLost}
	s := j.enter(net, r)
	defer j.exit(net, s)
	err := s.lanes.take(queue, func() error {
		return j.turns.take(queue, func() error {
			crew := j.board(s, r, room)
			j.drive(ctx, net, crew)
			return nil
		})
	})
	if err != nil && j.board(s, r, 0) != nil {
		return err // ctx has ended, and nobody else has taken it
	}
	<-r.done
	return errors.Join(ctx.Err(), r.err)
}

// roomFor gives the room for evaluations of a network: large batches are filled only where they fit the device's memory.
func (j *joint) roomFor(net network) int {
	if j.room == largeBucket && net.on.FitBatch(largeBucket) < largeBucket {
		return smallBucket
	}
	return j.room
}

// enter makes r wait at the network's stop, which exit leaves.
func (j *joint) enter(net network, r *ride) *stop {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stops[net]
	if s == nil {
		s = &stop{lanes: newTurns(lanes)}
		j.stops[net] = s
	}
	s.users++
	s.rides = append(s.rides, r)
	return s
}

func (j *joint) exit(net network, s *stop) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(j.stops, net)
	}
}

// waiting tells how many wait for a lane.
func (j *joint) waiting() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.stops {
		waiting, _ := s.lanes.load()
		n += waiting
	}
	return n
}

// board takes r, and as many of the others at its stop as fit beside it into room, in the order in which they came. Nobody
// boards where another has taken r.
func (j *joint) board(s *stop, r *ride, room int) (crew []*ride) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.taken {
		return nil
	}
	crew, room = []*ride{r}, room-r.rows()
	s.rides = slices.DeleteFunc(s.rides, func(o *ride) bool {
		if o == r {
			return true
		}
		if o.rows() > room {
			return false
		}
		room -= o.rows()
		crew = append(crew, o)
		return true
	})
	for _, o := range crew {
		o.taken = true
		o.leave()
	}
	return crew
}

// drive evaluates a crew, whose first is the driver's own; without one it does nothing.
func (j *joint) drive(ctx context.Context, net network, crew []*ride) {
	defer func() {
		for _, r := range crew {
			close(r.done)
		}
	}()
	left := crew
	if len(crew) > 1 {
		j.count.Add(uint64(len(crew) - 1))
		ctx = context.WithoutCancel(ctx) // it is not the driver's alone any more
		left = j.together(ctx, net, crew)
	}
	for _, r := range left {
		r.err = r.alone(ctx)
	}
}

// together evaluates a crew in one batch and gives those who have to go alone, because the batch has failed: whoever is
// to blame for that shall fail alone, too.
func (j *joint) together(ctx context.Context, net network, crew []*ride) (left []*ride) {
	var x []float32
	var g []float64
	var labels []int32
	var aboard []*ride
	for _, r := range crew {
		rx, rg, rl, err := r.give(ctx)
		if err != nil {
			r.err = err
			continue
		}
		x, g, labels, aboard = append(x, rx...), append(g, rg...), append(labels, rl...), append(aboard, r)
	}
	n, size, subspaces := len(labels), net.on.Pixels(), net.on.J()
	if n == 0 {
		return nil
	}
	batch := smallBucket
	if n > batch {
		batch = largeBucket
	}
	denoised, flow, raw, err := net.on.Denoise(ctx, net.weights,
		pad(x, size, 0, n, batch), pad(g, subspaces, 0, n, batch), pad(labels, 1, 0, n, batch))
	if err != nil {
		return aboard
	}
	at := 0
	for _, r := range aboard {
		from, to := at*size, (at+r.rows())*size
		r.err = r.use(ctx, denoised[from:to], flow[from:to], raw[from:to])
		at += r.rows()
	}
	return nil
}
