package source

import (
	"errors"
	"fmt"

	"github.com/anisoflight/anisoflight/train/data/pickle"
)

// pickledBatch reads a batch of CIFAR-10's python version: a dict with data, an array
// [n, 3072] of uint8, and labels, a list of n.
func pickledBatch(raw []byte) (pixels []byte, labels []int32, err error) {
	v, err := pickle.Load(raw)
	if err != nil {
		return nil, nil, err
	}
	dict, ok := v.(*pickle.Dict)
	if !ok {
		return nil, nil, errors.New("is no batch: a dict with data and labels")
	}
	list, ok := dict.Items["labels"].(*pickle.List)
	if !ok {
		return nil, nil, errors.New("has no list called labels")
	}
	for i, label := range list.Items {
		n, ok := label.(int64)
		if !ok || n < 0 || n > 255 {
			return nil, nil, fmt.Errorf("label %d is no number from 0 to 9", i)
		}
		labels = append(labels, int32(n))
	}
	array, err := arrayOf(dict.Items["data"])
	if err != nil {
		return nil, nil, fmt.Errorf("data: %w", err)
	}
	return array, labels, nil
}

// arrayOf interprets the pickle of a NumPy array [n, 3072] of uint8 in C order.
func arrayOf(v any) ([]byte, error) {
	o, ok := v.(*pickle.Object)
	if !ok || o.Func.Name != "_reconstruct" {
		return nil, errors.New("is no NumPy array")
	}
	state, ok := o.State.(pickle.Tuple) // version, shape, dtype, Fortran order, bytes
	if !ok || len(state) != 5 {
		return nil, errors.New("is an array without its values")
	}
	shape, ok := state[1].(pickle.Tuple)
	if !ok || len(shape) != 2 || shape[1] != int64(cifarPixels) {
		return nil, fmt.Errorf("is no array of the shape [n, %d]", cifarPixels)
	}
	dtype, ok := state[2].(*pickle.Object)
	if !ok || dtype.Func.Name != "dtype" || len(dtype.Args) == 0 || dtype.Args[0] != "u1" || state[3] != false {
		return nil, errors.New("is no array of uint8 in C order")
	}
	values, ok := state[4].(string)
	if !ok {
		return nil, errors.New("has no bytes for values")
	}
	if n, ok := shape[0].(int64); !ok || n < 0 || n > maxBatch || int64(len(values)) != n*cifarPixels {
		return nil, fmt.Errorf("has %d values, which are no whole number of images of its shape", len(values))
	}
	return []byte(values), nil
}
