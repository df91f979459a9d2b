// Package safetensors reads and writes the safetensors file format.
//
// A file is
//
//	8 bytes      n, the length of the header, little-endian uint64
//	n bytes      JSON object: name → {"dtype", "shape", "data_offsets": [begin, end)}, and
//	             optionally "__metadata__": {string: string}; padded with spaces
//	the rest     the tensors' bytes, little-endian, row-major, without gaps or overlap
//
// Before it reads data, the reader bounds the header and refuses duplicate names, offsets that overlap or leave gaps,
// and sizes that disagree with dtype and shape.
//
// Begin at [File].
package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// MaxHeader is the largest header, in bytes, that is read or written.
const MaxHeader = 1 << 20

// DType is an element type by its name in the file.
type DType string

// The element types that this project reads and writes.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
)

// sizes holds the bytes of one element of every type of the format.
var sizes = map[DType]int{
	F64: 8, I64: 8, "U64": 8, F32: 4, "I32": 4, "U32": 4, F16: 2, BF16: 2, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1,
}

// metadataName is the member of the header that is no tensor.
const metadataName = "__metadata__"

// entry is what the header says of a tensor.
type entry struct {
	DType   DType     `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// Tensor is a named array. Data is row-major and little-endian, of the size of DType and Shape. A tensor to be written
// has values in place of Data.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte

	values  any       // []float32, []float64 or []int64 instead of Data
	offsets [2]uint64 // of Data in the file that was read
}

// File is the content of one safetensors file, tensors in the order of their bytes.
type File struct {
	Tensors  []Tensor
	Metadata map[string]string
}

// FormatError is returned for a file that breaks the format. Tensor is empty if the fault is not in one tensor.
type FormatError struct {
	Tensor string
	Msg    string
}

func (e *FormatError) Error() string {
	if e.Tensor == "" {
		return "safetensors: " + e.Msg
	}
	return fmt.Sprintf("safetensors: tensor %q: %s", e.Tensor, e.Msg)
}

// Lookup returns the tensor of that name, or nil.
func (f *File) Lookup(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// bytes returns the size of the data that DType and Shape ask for.
func (t *Tensor) bytes() int { return elements(t.Shape) * sizes[t.DType] }

// elements returns ∏ shape, or −1 if it is negative or overflows.
func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		if d < 0 || (d > 0 && n > math.MaxInt/8/d) {
			return -1
		}
		n *= d
	}
	return n
}

// Float32s returns the values of an F32, F64, F16 or BF16 tensor as float32.
func (t *Tensor) Float32s() ([]float32, error) {
	if t.DType == F32 {
		out := make([]float32, len(t.Data)/4)
		_, err := binary.Decode(t.Data, binary.LittleEndian, out)
		return out, err
	}
	wide, err := t.Float64s()
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(wide))
	for i, v := range wide {
		out[i] = float32(v)
	}
	return out, nil
}

// Float64s returns the values of an F64, F32, F16 or BF16 tensor as float64.
func (t *Tensor) Float64s() ([]float64, error) {
	size := max(sizes[t.DType], 1)
	out := make([]float64, len(t.Data)/size)
	for i := range out {
		b := t.Data[i*size:]
		switch t.DType {
		case F64:
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case F32:
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case BF16:
			out[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
		case F16:
			out[i] = half(binary.LittleEndian.Uint16(b))
		default:
			return nil, &FormatError{t.Name, fmt.Sprintf("dtype %s is not a float type", t.DType)}
		}
	}
	return out, nil
}

// Int64s returns the values of an I64 tensor.
func (t *Tensor) Int64s() ([]int64, error) {
	if t.DType != I64 {
		return nil, &FormatError{t.Name, fmt.Sprintf("dtype %s, want I64", t.DType)}
	}
	out := make([]int64, len(t.Data)/8)
	_, err := binary.Decode(t.Data, binary.LittleEndian, out)
	return out, err
}

// half converts an IEEE 754 binary16 value.
func half(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exp, frac := int(h>>10&0x1f), float64(h&0x3ff)
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// FromFloat32s makes an F32 tensor of values, which must not change until it is written.
func FromFloat32s(name string, shape []int, values []float32) Tensor {
	return Tensor{Name: name, DType: F32, Shape: shape, values: values}
}

// FromFloat64s makes an F64 tensor of values, which must not change until it is written.
func FromFloat64s(name string, shape []int, values []float64) Tensor {
	return Tensor{Name: name, DType: F64, Shape: shape, values: values}
}

// FromInt64s makes an I64 tensor of values, which must not change until it is written.
func FromInt64s(name string, shape []int, values []int64) Tensor {
	return Tensor{Name: name, DType: I64, Shape: shape, values: values}
}
