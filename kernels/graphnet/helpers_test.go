package graphnet

import (
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

func f64(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float64, dims...) }
