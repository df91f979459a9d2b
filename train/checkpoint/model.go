// Package checkpoint stores models and the states of runs as folders.
//
//	model/  config.json         EDM's keyword arguments, or those of a mixture
//	        model.safetensors   the state dict of EDM's EDMPrecond: names under "model.",
//	                            PyTorch's layouts; or the tensors of a mixture
//	        schedule.json       optional: the model's own schedule
//	        basis.safetensors   optional: the dense basis of that schedule
//	        classes.json        optional: the classes that had no images in training
//
//	run/    run.json            configuration and counters
//	        state.safetensors   "params/…", "m/…", "v/…", "ema/…" by the parameters' names,
//	                            "theta_m", "theta_v" [rows, J, K−1], "rows" [steps, columns]
//	        network.json, schedule.json, basis.safetensors   as in a model, where there are any
//
// A folder appears whole or not at all (package atomicdir), and its bytes depend on its content alone. Names, shapes,
// types and sizes of all tensors are checked when they are read, and errors name the tensor.
//
// Begin with model.go.
package checkpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/graphnet"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// Model is a network with its values and, if it has one, a schedule.
type Model struct {
	Net      kernels.Architecture
	Values   [][]float32        // in PyTorch's layout and the order of Net.Params
	Schedule *schedule.Schedule // nil for none
	Basis    *basis.Basis       // dense basis of the schedule; nil for a basis by formula
	Unseen   []int32            // classes that had no images in training; nil if all had, or it is not known
	Hash     string             // sha256 of model.safetensors in hex; set by LoadModel and SaveModel
}

// LoadModel reads the model folder dir. A file that is missing or cannot be used is an *[Error]; if it is not what was
// written, the cause is an *[atomicdir.DamageError].
func LoadModel(dir string) (*Model, error) {
	return readModel(dir, func(m *Model, folder *atomicdir.Stored) error {
		m.Values = make([][]float32, len(m.Net.Params()))
		hash, faults := scanWeights(folder, m.Net, func(i int, values []float32) { m.Values[i] = values })
		for i, p := range m.Net.Params() {
			if m.Values[i] == nil && p.Optional {
				m.Values[i] = make([]float32, p.Size())
			}
		}
		m.Hash = hash
		return cmp.Or(faults...)
	})
}

// readModel reads a model folder; weights reads the values of m.Net.
func readModel(dir string, weights func(m *Model, folder *atomicdir.Stored) error) (*Model, error) {
	return readFolder(dir, func(folder *atomicdir.Stored) (*Model, error) {
		m := &Model{}
		if err := m.configPart().read(folder); err != nil {
			return nil, err
		}
		if err := weights(m, folder); err != nil {
			return nil, err
		}
		return m, readParts(folder, append(m.scheduleParts(), part{classesFile, true, m.readClasses}))
	})
}

// unseen is the content of classes.json.
type unseen struct {
	Labels *[]int32 `json:"without_images"`
}

func (m *Model) readClasses(b []byte) error {
	if err := json.Unmarshal(b, &unseen{&m.Unseen}); err != nil {
		return err
	}
	last, classes := int32(-1), m.Net.Shape().Labels
	for _, label := range m.Unseen {
		if label <= last || int(label) >= classes || len(m.Unseen) >= classes {
			return fmt.Errorf("without_images must be some of %d classes, increasing, got %v", classes, m.Unseen)
		}
		last = label
	}
	return nil
}

func (m *Model) configPart() part {
	return part{configFile, false, func(b []byte) (err error) {
		m.Net, err = ParseNetwork(b)
		return err
	}}
}

func (m *Model) scheduleParts() []part {
	return []part{schedulePart(&m.Schedule, true), basisPart(BasisFile, &m.Basis, true)}
}

// SaveModel writes m as the folder dir, which appears whole or not at all, and sets m.Hash. An existing folder is an
// error that wraps fs.ErrExist unless replace is true.
func SaveModel(dir string, m *Model, replace bool) error {
	files := map[string][]byte{}
	config, err := json.MarshalIndent(m.Net, "", "  ")
	if err != nil {
		return inFile(configFile, err)
	}
	files[configFile] = append(config, '\n')
	if len(m.Unseen) > 0 {
		if files[classesFile], err = json.Marshal(unseen{&m.Unseen}); err != nil {
			return inFile(classesFile, err)
		}
	}
	weights := &safetensors.File{Metadata: map[string]string{"format": "pt"}}
	for _, t := range m.Net.State(m.Values) {
		weights.Tensors = append(weights.Tensors, safetensors.FromFloat32s(t.Name, t.Shape, t.Data))
	}
	var hash string
	err = atomicdir.Write(dir, replace, func(folder *atomicdir.Folder) (err error) {
		if hash, err = writeTensors(folder, weightsFile, weights); err != nil {
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

// withHash completes the provenance of a schedule with the hash of the model that is written with it.
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

// architectures are the kinds of network by model_type in config.json. A new kind is a package and a line here.
var architectures = map[string]func(config []byte) (kernels.Architecture, error){
	unet.SongUNet:      parser(unet.Parse),
	unet.DhariwalUNet:  parser(unet.Parse),
	mixture.ModelType:  parser(mixture.Parse),
	graphnet.ModelType: parser(graphnet.Parse),
}

// parser returns a network's own Parse as one of any architecture.
func parser[A kernels.Architecture](parse func([]byte) (A, error)) func([]byte) (kernels.Architecture, error) {
	return func(config []byte) (kernels.Architecture, error) {
		net, err := parse(config)
		if err != nil {
			return nil, err
		}
		return net, nil
	}
}

// ParseNetwork returns the network of a config.json; model_type selects its kind, with EDM's default. A field that
// cannot be used is a *[nn.ConfigError].
func ParseNetwork(config []byte) (kernels.Architecture, error) {
	head := struct {
		ModelType string `json:"model_type"`
	}{unet.DhariwalUNet}
	if err := json.Unmarshal(config, &head); err != nil {
		return unet.Parse(config) // for its error
	}
	parse, ok := architectures[head.ModelType]
	if !ok {
		return nil, &nn.ConfigError{Field: "model_type", Reason: fmt.Sprintf(
			"must be %s, got %q", strings.Join(slices.Sorted(maps.Keys(architectures)), ", "), head.ModelType)}
	}
	return parse(config)
}
