package graphnet

import (
	"maps"
	"slices"
	"strings"

	lib "github.com/gomlx/gomlx/pkg/core/dtypes"
)

// kind is what the package distinguishes of PyTorch's types: every float is computed in the
// precision of the model.
type kind int

const (
	float kind = iota
	integer
	boolean
)

var kinds = map[string]kind{
	"float64": float, "float32": float, "float16": float, "bfloat16": float,
	"int64": integer, "int32": integer, "int16": integer, "int8": integer, "uint8": integer, "bool": boolean,
}

func knownTypes() string { return strings.Join(slices.Sorted(maps.Keys(kinds)), ", ") }

func kindOf(t lib.DType) kind {
	switch {
	case t.IsFloat():
		return float
	case t == lib.Bool:
		return boolean
	}
	return integer
}

func (k kind) String() string { return [...]string{"floating", "integer", "boolean"}[k] }
