package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anisoflight/anisoflight/internal/sampler"
)

// Batcher evaluates requests that wait for one network in one batch. Whoever gets a slot takes along, as far as there
// is room in the batch, what waits for a slot with the same network. What is taken along leaves the queue, so that
// others come no later. Nobody waits for company; but no network has more than a few slots of partial batches at a
// time, since more would only share the processors, and what waits meanwhile goes together.
//
// Only parts of batches of one size go together, since the size may change the rounding. Within a batch a row's values
// do not depend, to the bit, on the rows beside it nor on its place (TestRowsAreIndependent), so that company changes
// no sample.
type Batcher struct {
	queue  *Queue
	apart  bool          // every evaluation goes alone
	count  atomic.Uint64 // evaluations taken along by another
	spread places

	mu     sync.Mutex
	groups map[group]*groupQueue
}

// New returns a batcher whose evaluations take slots of a queue. Apart, it joins none.
func New(queue *Queue, apart bool) *Batcher {
	return &Batcher{queue: queue, apart: apart, groups: map[group]*groupQueue{}}
}

// slotsPerGroup is how many evaluations of one group, of less than a full batch, may be under way or ask for a slot
// at a time: one that computes, and one whose host prepares the next.
const slotsPerGroup = 2

// group is what parts have in common that go together.
type group struct {
	net  sampler.Network
	size int // of their batches
}

// groupQueue is the queue of one group. It is there as long as anybody uses it.
type groupQueue struct {
	slots   *Queue
	pending []*pending // that nobody has claimed yet, in the order in which they came
	users   int
}

// pending is a part that waits to be evaluated, in its own slot or another's.
type pending struct {
	sampler.Part
	leave   context.CancelFunc // the queues
	claimed bool               // by whoever evaluates it; guarded by Batcher.mu
	done    chan struct{}      // closed when it has been evaluated
	err     error              // of that; errLost until then
}

// errLost is what a pending part ends with whose evaluator has panicked.
var errLost = errors.New("the batch was lost")

// Place returns a network on the device that has the least to do, of several the first, until leave.
func (b *Batcher) Place(net sampler.Network) (placed sampler.Network, leave func(), err error) {
	return b.spread.take(net)
}

// Take runs f in a slot.
func (b *Batcher) Take(ctx context.Context, f func() error) error { return b.queue.Take(ctx, f) }

// Run does long work in a slot, which it hands on at every report: see [Queue.Run].
func (b *Batcher) Run(
	ctx context.Context, report func(done, total int), f func(report func(done, total int)) error,
) error {
	return b.queue.Run(ctx, report, f)
}

// Joined returns how many evaluations were made in another's slot.
func (b *Batcher) Joined() uint64 { return b.count.Load() }

// Waiting returns how many wait for a slot of their group.
func (b *Batcher) Waiting() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.groups {
		waiting, _ := q.slots.Load()
		n += waiting
	}
	return n
}

// Evaluate evaluates p, alone or with others. It returns when p is not in use any more, also when ctx has ended before.
func (b *Batcher) Evaluate(ctx context.Context, net sampler.Network, p sampler.Part) error {
	if b.apart || p.Rows >= p.Size {
		return b.queue.Take(ctx, func() error { return p.Alone(ctx) })
	}
	queued, leave := context.WithCancel(ctx)
	defer leave()
	own := &pending{Part: p, leave: leave, done: make(chan struct{}), err: errLost}
	of := group{net, p.Size}
	q := b.enter(of, own)
	defer b.exit(of, q)
	err := q.slots.Take(queued, func() error {
		return b.queue.Take(queued, func() error {
			b.run(ctx, net, b.claim(q, own))
			return nil
		})
	})
	if err != nil && b.claim(q, own) != nil {
		return err // ctx has ended, and nobody else has claimed it
	}
	<-own.done
	return errors.Join(ctx.Err(), own.err)
}

// enter makes p wait in its group's queue, which exit leaves.
func (b *Batcher) enter(of group, p *pending) *groupQueue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.groups[of]
	if q == nil {
		q = &groupQueue{slots: NewQueue(slotsPerGroup)}
		b.groups[of] = q
	}
	q.users++
	q.pending = append(q.pending, p)
	return q
}

func (b *Batcher) exit(of group, q *groupQueue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(b.groups, of)
	}
}

// claim claims own, and as many of the others in its queue as fit beside it into a batch, in the order in which they
// came. It claims none if another has claimed own.
func (b *Batcher) claim(q *groupQueue, own *pending) (members []*pending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if own.claimed {
		return nil
	}
	members = []*pending{own}
	size := own.Size - own.Rows
	q.pending = slices.DeleteFunc(q.pending, func(o *pending) bool {
		if o == own {
			return true
		}
		if o.Rows > size {
			return false
		}
		size -= o.Rows
		members = append(members, o)
		return true
	})
	for _, o := range members {
		o.claimed = true
		o.leave()
	}
	return members
}

// run evaluates the members of a batch, whose first is the evaluator's own; without one it does nothing.
func (b *Batcher) run(ctx context.Context, net sampler.Network, members []*pending) {
	defer func() {
		for _, p := range members {
			close(p.done)
		}
	}()
	left := members
	if len(members) > 1 {
		b.count.Add(uint64(len(members) - 1))
		ctx = context.WithoutCancel(ctx) // it is not the evaluator's alone any more
		left = b.together(ctx, net, members)
	}
	for _, p := range left {
		p.err = p.Alone(ctx)
	}
}

// together evaluates members in one batch and returns those who have to go alone, because the batch has failed: whoever
// is to blame for that shall fail alone, too.
func (b *Batcher) together(ctx context.Context, net sampler.Network, members []*pending) (left []*pending) {
	var x []float32
	var g []float64
	var labels []int32
	var inside []*pending
	for _, p := range members {
		px, pg, pl, err := p.Input(ctx)
		if err != nil {
			p.err = err
			continue
		}
		x, g, labels, inside = append(x, px...), append(g, pg...), append(labels, pl...), append(inside, p)
	}
	n, size, subspaces := len(labels), net.Model.Pixels(), net.Model.J()
	if n == 0 {
		return nil
	}
	in := sampler.Bucket{N: n, Size: members[0].Size}
	denoised, flow, raw, err := net.Model.Denoise(ctx, net.Weights,
		sampler.Pad(x, size, in), sampler.Pad(g, subspaces, in), sampler.Pad(labels, 1, in))
	if err != nil {
		return inside
	}
	at := 0
	for _, p := range inside {
		from, to := at*size, (at+p.Rows)*size
		p.err = p.Output(ctx, denoised[from:to], flow[from:to], raw[from:to])
		at += p.Rows
	}
	return nil
}
