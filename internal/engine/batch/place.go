package batch

import (
	"sync"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Batches are padded to one of two sizes, so that two compiled programs serve every request.
const (
	SmallBucket = 8
	LargeBucket = 64
)

// BucketFor returns the size of the next device batch when n rows remain. Small remainders go in several small batches
// where a padded row costs as much as a true one, on a CPU; so do all if a large one would not fit the device's
// memory.
func BucketFor(on *kernels.Model, n int) int {
	if (n > LargeBucket/2 || n > SmallBucket && accelerated(on.Device())) && on.FitBatch(LargeBucket) == LargeBucket {
		return LargeBucket
	}
	return SmallBucket
}

// accelerated reports whether the rows of a batch are computed side by side.
func accelerated(dev *device.Device) bool { return !dev.HostVisible() }

// Pad returns rows from … from+n−1 of v, per numbers each, with the last one repeated until there are bucket of them.
func Pad[E any](v []E, per, from, n, bucket int) []E {
	if n == bucket {
		return v[from*per : (from+n)*per]
	}
	out := append(make([]E, 0, bucket*per), v[from*per:(from+n)*per]...)
	last := out[(n-1)*per:]
	for len(out) < bucket*per {
		out = append(out, last...)
	}
	return out
}

// places spread trajectories and evaluations over the devices of the process.
type places struct {
	mu   sync.Mutex
	busy map[*device.Device]int // trajectories and evaluations under way
}

// take returns the network on the device that has the least to do, of several the first, until leave. Weights go there
// when they are first needed. A device that has no room for them is passed over.
func (p *places) take(net Network) (placed Network, leave func(), err error) {
	dev := p.choose(net)
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy[dev]--
	}
	if placed, err = net.beside(dev); err != nil {
		leave()
	}
	return placed, leave, err
}

func (p *places) choose(net Network) *device.Device {
	best := net.Model.Device()
	var others []*device.Device
	for _, d := range best.Peers() {
		if d != best && net.fits(d) { // it may wait for weights that are on their way to a device
			others = append(others, d)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range others {
		if p.busy[d] < p.busy[best] {
			best = d
		}
	}
	if p.busy == nil {
		p.busy = map[*device.Device]int{}
	}
	p.busy[best]++
	return best
}

// fits reports whether a device has the network's weights, or room for them and as much again for programs.
func (n Network) fits(d *device.Device) bool {
	available, known := d.Available()
	return !known || n.Weights.On(d) || available >= 2*n.Weights.Bytes()
}

func (n Network) beside(d *device.Device) (Network, error) {
	on, err := n.Model.Beside(d)
	if err != nil {
		return n, err
	}
	weights, err := n.Weights.Beside(on)
	return Network{Model: on, Weights: weights}, err
}
