package modelbench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// Save writes a safetensors file of the inputs, as input/NAME, and of what the programs
// make of them, as output/PROGRAM or output/PROGRAM/NAME: images in NHWC, gradients of
// parameters in PyTorch's layout. Training steps draw noise of their own; the file has
// the terms of the estimator at input/eps and, where there is a probe, input/z.
func (b *Bench) Save(ctx context.Context, path string, programs []string) (err error) {
	f := &safetensors.File{Tensors: b.in.tensors()}
	for _, name := range programs {
		w, err := b.work(ctx, name)
		if err != nil {
			return err
		}
		out, err := w.outputs(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f.Tensors = append(f.Tensors, out...)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriter(file)
	if err := safetensors.Write(buffered, f); err != nil {
		return err
	}
	return buffered.Flush()
}
