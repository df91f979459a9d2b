package batch

import (
	"sync"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// places distributes trajectories and evaluations over the devices of the process.
type places struct {
	mu   sync.Mutex
	busy map[*device.Device]int // trajectories and evaluations under way
}

// take returns the network on the least busy device, the first of several, until leave. Weights are copied there when
// they are first needed. A device without room for them is skipped.
func (p *places) take(net sampler.Network) (placed sampler.Network, leave func(), err error) {
	dev := p.choose(net)
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy[dev]--
	}
	if placed, err = net.OnDevice(dev); err != nil {
		leave()
	}
	return placed, leave, err
}

func (p *places) choose(net sampler.Network) *device.Device {
	best := net.Model.Device()
	var peers []*device.Device
	for _, d := range best.Peers() {
		if d != best && net.Fits(d) { // it may wait for weights that are on their way to a device
			peers = append(peers, d)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range peers {
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
