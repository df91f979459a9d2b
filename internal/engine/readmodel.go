package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

func (e *Engine) readModel(name, folder, path string) (*model, error) {
	text, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		return nil, err
	}
	m := &model{name: name, path: path, dev: e.dev, holders: 1, kernels: map[*basis.Basis]*kernels.Model{}}
	if m.config, err = unet.ParseConfig(text); err != nil {
		return nil, err
	}
	if m.net, err = unet.New(m.config); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	m.hash = hex.EncodeToString(sum[:])
	f, err := safetensors.Decode(data)
	if err != nil {
		return nil, err
	}
	var state []unet.Tensor
	for i := range f.Tensors {
		v, err := f.Tensors[i].Float32s()
		if err != nil {
			return nil, err
		}
		state = append(state, unet.Tensor{Name: f.Tensors[i].Name, Shape: f.Tensors[i].Shape, Data: v})
	}
	values, err := m.net.Load(state)
	if err != nil {
		return nil, err
	}
	if text, err = os.ReadFile(filepath.Join(folder, "schedule.json")); err == nil {
		if m.sched, err = schedule.Decode(bytes.NewReader(text)); err != nil {
			return nil, err
		}
	}
	k, err := kernels.NewModel(e.dev, kernels.UNet(m.net), nil)
	if err != nil {
		return nil, err
	}
	m.weights, err = k.Upload(values)
	return m, err
}

// plain gives the programs of a model's network on the whole image space.
func (e *Engine) plain(m *model) (*kernels.Model, error) {
	h, w, _ := m.imageSize()
	b, err := e.basisFor("none", 0, h, w, nil)
	if err != nil {
		return nil, err
	}
	return m.on(b)
}
