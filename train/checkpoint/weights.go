package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// ReadWeights reads the weights of the network of the model folder dir, one tensor at a time, and returns the Hash of
// the model. It calls take with the values of parameter i, in PyTorch's layout, which take may keep. It skips optional
// parameters that are not in the file, and begins again if the folder is replaced meanwhile. Errors are those of
// [LoadModel].
func ReadWeights(dir string, net kernels.Architecture, take func(i int, values []float32)) (string, error) {
	return readFolder(dir, func(folder *atomicdir.Stored) (string, error) {
		hash, faults := scanWeights(folder, net, take)
		return hash, cmp.Or(faults...)
	})
}

// scanWeights is [ReadWeights] that returns all errors.
func scanWeights(folder *atomicdir.Stored, net kernels.Architecture, take func(i int, values []float32),
) (hash string, faults []error) {
	hash, err := folder.Scan(weightsFile, func(r io.Reader, size int64) error {
		faults = scanTensors(r, size, net, take)
		return nil
	})
	if err != nil { // what was written may be sound
		return "", []error{inFile(weightsFile, err)}
	}
	return hash, faults
}

// scanTensors reads a weights file of size bytes.
func scanTensors(r io.Reader, size int64, net kernels.Architecture, take func(i int, values []float32),
) (faults []error) {
	places := map[string]int{}
	for i, p := range net.Params() {
		places[p.Name] = i
	}
	check := net.Check()
	for t, err := range safetensors.Scan(r, size) {
		if err != nil { // tensors that are missing in a broken file are no faults
			return []error{inFile(weightsFile, err)}
		}
		values, err := t.Float32s()
		if err != nil {
			faults = append(faults, &Error{File: weightsFile, Tensor: t.Name, Msg: "is of type " + string(t.DType) +
				"; a network's tensors are F32, F64, F16 or BF16", Err: err})
			check.Skip(t.Name)
			continue
		}
		fits := check.Add(nn.Tensor{Name: t.Name, Shape: t.Shape, Data: values})
		if i, trained := places[t.Name]; trained && fits {
			take(i, values)
		}
	}
	for _, fault := range check.Faults() {
		faults = append(faults, inFile(weightsFile, fault))
	}
	return faults
}

// ModelWriter writes a model folder whose weights come piece by piece, and checks them. It ends with the first call of
// Commit or Abort.
type ModelWriter struct {
	net     kernels.Architecture
	folder  *atomicdir.Folder
	file    *atomicdir.File
	scanned *io.PipeWriter
	scan    chan error // the result of the check
	ended   bool
}

// CreateModel begins to write the model folder dir with a config.json and weights of size bytes. A configuration that
// cannot be used is an *[Error].
func CreateModel(dir string, config []byte, size int64) (*ModelWriter, error) {
	net, err := ParseNetwork(config)
	if err != nil {
		return nil, inFile(configFile, err)
	}
	folder, err := atomicdir.Begin(dir)
	if err != nil {
		return nil, err
	}
	w := &ModelWriter{net: net, folder: folder, scan: make(chan error, 1)}
	err = folder.WriteFile(configFile, config)
	if err == nil {
		w.file, err = folder.Create(weightsFile)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Abort())
	}
	in, out := io.Pipe()
	w.scanned = out
	go func() {
		err := safely.Do(func() error {
			return cmp.Or(scanTensors(in, size, net, func(int, []float32) {})...)
		})
		if err == nil {
			_, err = io.Copy(io.Discard, in)
		}
		_ = in.CloseWithError(err)
		w.scan <- err
	}()
	return w, nil
}

// Write writes the next bytes of the weights. It fails if the weights cannot be used.
func (w *ModelWriter) Write(b []byte) (int, error) {
	if n, err := w.file.Write(b); err != nil {
		return n, err
	}
	return w.scanned.Write(b)
}

// Commit moves the folder to its place. Unless replace is true, an existing one is an error that wraps fs.ErrExist.
// Weights that cannot be used are an *[Error].
func (w *ModelWriter) Commit(replace bool) (*Model, error) {
	if err := w.end(); err != nil {
		return nil, errors.Join(err, w.folder.Abort())
	}
	if err := w.folder.Commit(replace); err != nil {
		return nil, err
	}
	return &Model{Net: w.net, Hash: w.file.Hash()}, nil
}

// Abort removes what has been written.
func (w *ModelWriter) Abort() {
	if !w.ended {
		_ = errors.Join(w.end(), w.folder.Abort())
	}
}

func (w *ModelWriter) end() error {
	w.ended = true
	err := w.scanned.Close()
	return errors.Join(<-w.scan, err, w.file.Close())
}

// CheckModel reads the model folder dir and returns its network and every *[Error]; [LoadModel] stops at the first. If
// the configuration cannot be used, the network is nil and the weights are not read. One tensor is in memory at a time.
func CheckModel(dir string) (kernels.Architecture, []error) {
	var m *Model
	var faults []error
	err := atomicdir.Read(dir, func(folder *atomicdir.Stored) error {
		m, faults = &Model{}, nil
		faults = appendFault(faults, m.configPart().read(folder))
		if m.Net != nil {
			_, wrong := scanWeights(folder, m.Net, func(int, []float32) {})
			faults = append(faults, wrong...)
		}
		for _, f := range m.scheduleParts() {
			faults = appendFault(faults, f.read(folder))
		}
		return errors.Join(faults...)
	})
	if m == nil {
		return nil, []error{inFile(filepath.Base(dir), err)}
	}
	return m.Net, faults
}

func appendFault(faults []error, err error) []error {
	if err != nil {
		faults = append(faults, err)
	}
	return faults
}

// DescribeModel reads the model folder dir without the values of its weights; it checks their names and shapes. Errors
// are those of [LoadModel].
func DescribeModel(dir string) (*Model, error) { return readModel(dir, (*Model).describeWeights) }

func (m *Model) describeWeights(folder *atomicdir.Stored) error {
	if err := folder.CheckSize(weightsFile); err != nil {
		return inFile(weightsFile, err)
	}
	f, err := safetensors.ReadHeader(folder.Path(weightsFile))
	if err != nil {
		_, damage := folder.Sum(context.Background(), weightsFile)
		return inFile(weightsFile, cmp.Or(damage, err))
	}
	for _, p := range m.Net.Params() {
		t := f.Lookup(p.Name)
		switch {
		case t == nil && p.Optional:
		case t == nil:
			return &Error{File: weightsFile, Tensor: p.Name, Msg: "is missing"}
		case !slices.Equal(t.Shape, p.Shape):
			return &Error{File: weightsFile, Tensor: p.Name, Msg: "is of another shape than config.json asks for"}
		}
	}
	if m.Hash = folder.Hash(weightsFile); m.Hash == "" { // there is no manifest
		m.Hash, err = folder.Sum(context.Background(), weightsFile)
	}
	return inFile(weightsFile, err)
}

// WeightsFile returns the place of the weights of the model folder dir.
func WeightsFile(dir string) string { return filepath.Join(dir, weightsFile) }
