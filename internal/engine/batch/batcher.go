package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Batcher evaluates requests that wait for one network in one batch. A request that gets a slot also evaluates those
// that wait for a slot with the same network, as far as the batch has room. They leave the queue, so that other clients
// do not wait longer. No request waits for others; but a network has only a few slots for partial batches at a time,
// since more would only share the processors, and what waits meanwhile is evaluated together.
//
// Only evaluations with batches of one size are joined, since the size may change the rounding. Within a batch the
// values of a row depend neither on the other rows nor on its place, to the bit (TestRowsAreIndependent).
type Batcher struct {
	*Queue                 // of the slots, which all work on the device takes
	separate bool          // every evaluation goes alone
	joined   atomic.Uint64 // evaluations taken along by another

	batching sync.Mutex // guards what follows
	groups   map[group]*groupQueue
	busy     map[*device.Device]int // trajectories and evaluations under way
}

// New returns a batcher whose evaluations take slots of a queue. If separate, it joins none.
func New(queue *Queue, separate bool) *Batcher {
	return &Batcher{
		Queue: queue, separate: separate, groups: map[group]*groupQueue{}, busy: map[*device.Device]int{},
	}
}

// slotsPerGroup is how many evaluations of one group, of less than a full batch, may be under way or ask for a slot
// at a time: one that computes, and one whose host prepares the next.
const slotsPerGroup = 2

// group is what evaluations must have in common to be joined.
type group struct {
	net  sampler.Network
	size int // of their batches
}

// groupQueue is the queue of one group, while the group has users.
type groupQueue struct {
	slots   *Queue
	pending []*pending // that nobody has claimed yet, in the order in which they came
	users   int
}

// pending is an evaluation that waits, for its own slot or another's.
type pending struct {
	sampler.Part
	leave context.CancelFunc // the queues
	done  chan struct{}      // closed when it has been evaluated
	err   error              // of that; errLost until then
}

// errLost is the error of a pending evaluation whose evaluator has panicked.
var errLost = errors.New("the batch was lost")

// Place returns a network on the device that has the least to do, the first of several, until leave. Weights are copied
// there when they are first needed. A device without room for them is skipped.
func (b *Batcher) Place(net sampler.Network) (placed sampler.Network, leave func(), err error) {
	dev := b.choose(net)
	leave = func() {
		b.batching.Lock()
		defer b.batching.Unlock()
		b.busy[dev]--
	}
	if placed, err = net.OnDevice(dev); err != nil {
		leave()
	}
	return placed, leave, err
}

func (b *Batcher) choose(net sampler.Network) *device.Device {
	best := net.Model.Device()
	var peers []*device.Device
	for _, d := range best.Peers() {
		if d != best && net.Fits(d) { // it may wait for weights that are on their way to a device
			peers = append(peers, d)
		}
	}
	b.batching.Lock()
	defer b.batching.Unlock()
	for _, d := range peers {
		if b.busy[d] < b.busy[best] {
			best = d
		}
	}
	b.busy[best]++
	return best
}

// Joined returns how many evaluations were made in another's slot.
func (b *Batcher) Joined() uint64 { return b.joined.Load() }

// Waiting returns how many wait for a slot of their group.
func (b *Batcher) Waiting() (n int) {
	b.batching.Lock()
	defer b.batching.Unlock()
	for _, q := range b.groups {
		waiting, _ := q.slots.Load()
		n += waiting
	}
	return n
}

// Evaluate evaluates p, alone or with others. It returns when p is no longer in use, even if ctx has ended.
func (b *Batcher) Evaluate(ctx context.Context, net sampler.Network, p sampler.Part) error {
	if b.separate || p.Rows >= p.Size {
		return b.Take(ctx, func() error { return p.Alone(ctx) })
	}
	queued, leave := context.WithCancel(ctx)
	defer leave()
	waiting := &pending{Part: p, leave: leave, done: make(chan struct{}), err: errLost}
	key := group{net, p.Size}
	q := b.enter(key, waiting)
	defer b.exit(key, q)
	err := q.slots.Take(queued, func() error {
		return b.Take(queued, func() error {
			b.run(ctx, net, b.claim(q, waiting))
			return nil
		})
	})
	if err != nil && b.withdraw(q, waiting) {
		return err // ctx has ended
	}
	<-waiting.done
	return errors.Join(ctx.Err(), waiting.err)
}

// enter makes p wait in its group's queue, which exit leaves.
func (b *Batcher) enter(key group, p *pending) *groupQueue {
	b.batching.Lock()
	defer b.batching.Unlock()
	q := b.groups[key]
	if q == nil {
		q = &groupQueue{slots: NewQueue(slotsPerGroup)}
		b.groups[key] = q
	}
	q.users++
	q.pending = append(q.pending, p)
	return q
}

func (b *Batcher) exit(key group, q *groupQueue) {
	b.batching.Lock()
	defer b.batching.Unlock()
	if q.users--; q.users == 0 {
		delete(b.groups, key)
	}
}

// claim claims first, and as many of the others in its queue as fit into its batch, in the order of arrival. It claims
// none if another has claimed first.
func (b *Batcher) claim(q *groupQueue, first *pending) (members []*pending) {
	b.batching.Lock()
	defer b.batching.Unlock()
	if !slices.Contains(q.pending, first) {
		return nil
	}
	members = []*pending{first}
	size := first.Size - first.Rows
	q.pending = slices.DeleteFunc(q.pending, func(o *pending) bool {
		if o == first {
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
		o.leave()
	}
	return members
}

// withdraw takes p from its queue. It returns false if another has claimed p, and will evaluate it.
func (b *Batcher) withdraw(q *groupQueue, p *pending) bool {
	b.batching.Lock()
	defer b.batching.Unlock()
	i := slices.Index(q.pending, p)
	if i < 0 {
		return false
	}
	q.pending = slices.Delete(q.pending, i, i+1)
	return true
}

// run evaluates the members of a batch, if there are any. The first is the evaluator's own.
func (b *Batcher) run(ctx context.Context, net sampler.Network, members []*pending) {
	defer func() {
		for _, p := range members {
			close(p.done)
		}
	}()
	alone := members
	if len(members) > 1 {
		b.joined.Add(uint64(len(members) - 1))
		ctx = context.WithoutCancel(ctx) // it is not the evaluator's alone any more
		alone = b.evaluateTogether(ctx, net, members)
	}
	for _, p := range alone {
		p.err = p.Alone(ctx)
	}
}

// evaluateTogether evaluates members in one batch. If that fails, it returns them, to be evaluated alone: then only
// those fail that caused the error.
func (b *Batcher) evaluateTogether(ctx context.Context, net sampler.Network, members []*pending) (left []*pending) {
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
	bucket := sampler.Bucket{N: n, Size: members[0].Size}
	denoised, flow, raw, err := net.Model.Denoise(ctx, net.Weights,
		sampler.Pad(x, size, bucket), sampler.Pad(g, subspaces, bucket), sampler.Pad(labels, 1, bucket))
	if err != nil {
		return inside
	}
	row := 0
	for _, p := range inside {
		from, to := row*size, (row+p.Rows)*size
		p.err = p.Output(ctx, denoised[from:to], flow[from:to], raw[from:to])
		row += p.Rows
	}
	return nil
}
