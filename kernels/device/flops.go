package device

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/internal/nodes"
)

// countFLOPs counts the floating-point operations of the convolutions and matrix
// products that the outputs need, a multiply-add being two:
//
//	convolution   2 · |y| · |w| / C_out     taps on padding and in holes count, too
//	product       2 · |y| · Π contracted
//
// What else a program does (norms, activations, sums) is small beside that and, by
// custom, not counted. Nodes that no output needs are left out, as the compiler leaves
// them out.
func countFLOPs(outputs []*graph.Node) int64 {
	var total int64
	for _, node := range reachable(outputs) {
		total += nodeFLOPs(node)
	}
	return total
}

func nodeFLOPs(node *graph.Node) int64 {
	in, size := node.Inputs(), int64(1)
	switch node.Type() {
	case graph.NodeTypeConvGeneral:
		channels := node.Shape().Dimensions[nodes.Of(node).Sub("axes").Int("OutputChannels")]
		size = int64(in[1].Shape().Size()) / int64(channels)
	case graph.NodeTypeDot:
		size = int64(in[0].Shape().Dimensions[in[0].Rank()-1])
	case graph.NodeTypeDotGeneral:
		for _, axis := range nodes.Of(node).Ints("lhsContractingAxes") {
			size *= int64(in[0].Shape().Dimensions[axis])
		}
	default:
		return 0
	}
	return 2 * int64(node.Shape().Size()) * size
}

// reachable lists the nodes that the outputs need, each once, inputs before their users.
func reachable(outputs []*graph.Node) []*graph.Node {
	needed := map[graph.NodeId]bool{}
	stack := append([]*graph.Node(nil), outputs...)
	for len(stack) > 0 {
		node := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !needed[node.Id()] {
			needed[node.Id()] = true
			stack = append(stack, node.Inputs()...)
		}
	}
	var order []*graph.Node
	for _, node := range outputs[0].Graph().Nodes() { // in the order they were made
		if needed[node.Id()] {
			order = append(order, node)
		}
	}
	return order
}
