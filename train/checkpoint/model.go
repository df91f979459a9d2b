package checkpoint

import (
	"encoding/json"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// Model is a network with its values and, where it has one, its own schedule.
type Model struct {
	Net      kernels.Architecture
	Values   [][]float32        // in PyTorch's layout and the order of Net.Params
	Schedule *schedule.Schedule // nil: the model has none of its own
	Basis    *basis.Basis       // dense basis of that schedule; nil where the family's name says it all
	Hash     string             // sha256 of model.safetensors in hex; set by LoadModel and SaveModel
}

// LoadModel reads the model folder dir. What is missing or cannot be used is an *[Error]; a file that is not what was
// written is one whose cause is an *[atomicdir.DamageError].
func LoadModel(dir string) (*Model, error) {
	return readFolder(dir, func(folder *atomicdir.Stored) (*Model, error) {
		m := &Model{}
		return m, readParts(folder, m.files())
	})
}

// DecodeModel returns the model of the files of a folder that is not written yet.
func DecodeModel(config, weights []byte) (*Model, error) {
	m := &Model{}
	if err := m.decodeConfig(config); err != nil {
		return nil, inFile(configFile, err)
	}
	if err := m.decodeWeights(weights); err != nil {
		return nil, inFile(weightsFile, err)
	}
	return m, nil
}

func (m *Model) files() []part {
	return []part{
		{configFile, false, m.decodeConfig},
		{weightsFile, false, m.decodeWeights},
		schedulePart(&m.Schedule, true),
		basisPart(basisFile, &m.Basis, true),
	}
}

func (m *Model) decodeConfig(b []byte) error {
	net, err := ParseNetwork(b)
	if err != nil {
		return err
	}
	m.Net = net
	return nil
}

func (m *Model) decodeWeights(b []byte) error {
	f, err := safetensors.Decode(b)
	if err != nil {
		return err
	}
	state := make([]nn.Tensor, len(f.Tensors))
	for i := range f.Tensors {
		if state[i], err = tensorOf(&f.Tensors[i]); err != nil {
			return err
		}
	}
	m.Values, err = m.Net.Load(state)
	m.Hash = hashOf(b)
	return err
}

// OnBasis returns the network as kernels take it, with noise in the subspaces of b.
func (m *Model) OnBasis(b *basis.Basis) (kernels.Network, error) { return m.Net.On(m.Values, b) }

// tensorOf returns a stored tensor with its values.
func tensorOf(t *safetensors.Tensor) (nn.Tensor, error) {
	data, err := t.Float32s()
	if err != nil {
		return nn.Tensor{}, &Error{File: weightsFile, Tensor: t.Name, Msg: "is of type " + string(t.DType) +
			"; a network's tensors are F32, F64, F16 or BF16", Err: err}
	}
	return nn.Tensor{Name: t.Name, Shape: t.Shape, Data: data}, nil
}

// SaveModel writes m as the folder dir, which appears whole or not at all, and sets
// m.Hash. An existing folder is an error that wraps fs.ErrExist unless replace is true.
func SaveModel(dir string, m *Model, replace bool) error {
	files := map[string][]byte{}
	config, err := json.MarshalIndent(m.Net, "", "  ")
	if err != nil {
		return inFile(configFile, err)
	}
	files[configFile] = append(config, '\n')
	weights := &stream{file: safetensors.File{Metadata: map[string]string{"format": "pt"}}}
	for _, t := range m.Net.State(m.Values) {
		weights.float32s(t.Name, t.Shape, t.Data)
	}
	var hash string
	err = atomicdir.Write(dir, replace, func(folder *atomicdir.Folder) (err error) {
		if hash, err = weights.in(folder, weightsFile); err != nil {
			return err
		}
		if err := addSchedule(files, withHash(m.Schedule, hash), m.Basis); err != nil {
			return err
		}
		return fill(folder, files)
	})
	if err == nil {
		m.Hash = hash
	}
	return err
}

// withHash completes the provenance of a schedule whose model has no hash so far: it is
// the one that is written with it.
func withHash(s *schedule.Schedule, hash string) *schedule.Schedule {
	if s == nil {
		return nil
	}
	p := s.Provenance()
	if p == nil || p.Model == nil || p.Model.Hash != "" {
		return s
	}
	p.Model = &schedule.Source{Name: p.Model.Name, Hash: hash}
	return s.WithProvenance(*p)
}
