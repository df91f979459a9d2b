package batch

import (
	"sync"

	"github.com/anisoflight/anisoflight/kernels/device"
)

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

// beside returns the network on a device.
func (n Network) beside(d *device.Device) (Network, error) {
	on, err := n.Model.Beside(d)
	if err != nil {
		return n, err
	}
	weights, err := n.Weights.Beside(on)
	return Network{Model: on, Weights: weights}, err
}
