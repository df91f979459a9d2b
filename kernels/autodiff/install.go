package autodiff

import (
	"sync"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

var once sync.Once

// Install registers the repaired rules in the graph library's table. It may be
// called any number of times from any number of goroutines; it must have
// returned before a graph is differentiated.
//
// The table is the library's own and global to the process.
func Install() { once.Do(register) }

// A rule maps the adjoint v of node's output to the adjoints of node's inputs;
// nil stands for an adjoint that is zero.
type rule func(node, v *graph.Node) []*graph.Node

func register() {
	for kind, f := range map[graph.NodeType]rule{
		graph.NodeTypeConvGeneral: convGeneral,
		graph.NodeTypeDot:         dot,
		graph.NodeTypeDotGeneral:  dotGeneral,
		graph.NodeTypeSlice:       slice,
		graph.NodeTypeReverse:     reverse,
		graph.NodeTypeRsqrt:       rsqrt,
		graph.NodeTypeExpm1:       expm1,
		graph.NodeTypeIdentity:    identity,
		graph.NodeTypeReduceMax:   extremum,
		graph.NodeTypeReduceMin:   extremum,
		graph.NodeTypeSign:        flat,
		graph.NodeTypeFloor:       flat,
		graph.NodeTypeCeil:        flat,
		graph.NodeTypeRound:       flat,
	} {
		graph.VJPRegistration[kind] = func(node *graph.Node, v []*graph.Node, _ shapes.Shape) []*graph.Node {
			return f(node, v[0])
		}
	}
}
