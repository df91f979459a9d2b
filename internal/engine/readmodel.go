package engine

import (
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// readModel loads a model folder onto the device, to be computed at a precision.
func (e *Engine) readModel(name, folder, path string, at kernels.Precision) (*model, error) {
	stored, err := checkpoint.LoadModel(folder)
	if err != nil {
		return nil, err
	}
	m := &model{
		name: name, path: path, hash: stored.Hash, asked: at,
		dev: e.dev, stored: stored, shape: stored.Net.Shape(), sched: stored.Schedule, basis: stored.Basis,
		holders: 1, kernels: map[*basis.Basis]*kernels.Model{},
	}
	on, err := e.plain(m)
	if err != nil {
		return nil, err
	}
	m.precision = on.Precision()
	m.weights, err = on.Upload(stored.Values)
	if _, learned := stored.Net.(kernels.Trainable); learned {
		stored.Values = nil // they are on the device
	}
	return m, err
}

// plain gives the programs of a model's network on the whole image space.
func (e *Engine) plain(m *model) (*kernels.Model, error) {
	h, w, _ := m.imageSize()
	b, err := e.basisFor(schedule.Family{Basis: "none"}, h, w, nil, nil)
	if err != nil {
		return nil, err
	}
	return m.on(b)
}
