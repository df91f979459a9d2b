package checkpoint

import (
	"bufio"
	"errors"
	"io"

	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// stream is a safetensors file that is encoded while it is written: there is no copy of its values.
type stream struct {
	file  safetensors.File
	write []func(*safetensors.Writer) error // by tensor
}

func (s *stream) float32s(name string, shape []int, values []float32) {
	s.file.Tensors = append(s.file.Tensors, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: shape})
	s.write = append(s.write, func(w *safetensors.Writer) error { return w.Float32s(values) })
}

func (s *stream) float64s(name string, shape []int, values []float64) {
	s.file.Tensors = append(s.file.Tensors, safetensors.Tensor{Name: name, DType: safetensors.F64, Shape: shape})
	s.write = append(s.write, func(w *safetensors.Writer) error { return w.Float64s(values) })
}

// to writes the file.
func (s *stream) to(out io.Writer) error {
	w, err := safetensors.NewWriter(out, &s.file)
	if err != nil {
		return err
	}
	for _, write := range s.write {
		if err := write(w); err != nil {
			return err
		}
	}
	return w.Close()
}

// in writes the file in a folder, and returns its SHA-256 in hex.
func (s *stream) in(folder *atomicdir.Folder, name string) (hash string, err error) {
	file, err := folder.Create(name)
	if err != nil {
		return "", err
	}
	out := bufio.NewWriterSize(file, 1<<18) // a network has hundreds of small tensors
	err = s.to(out)
	if err == nil {
		err = out.Flush()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return "", inFile(name, err)
	}
	return file.Hash(), nil
}
