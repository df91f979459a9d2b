package device

import (
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device/internal/shim"
	"github.com/anisoflight/anisoflight/kernels/internal/nodes"
)

// Memory is what a compiled program needs on the device, in bytes.
type Memory struct {
	Arguments int64 `json:"arguments"`
	Outputs   int64 `json:"outputs"`
	Aliased   int64 `json:"aliased"` // part of the outputs that uses the memory of donated arguments
	Temporary int64 `json:"temporary"`
}

// Total returns the most that is in use at once.
func (m Memory) Total() int64 { return m.Arguments + m.Outputs - m.Aliased + m.Temporary }

// Measured ratio of a compiler's memory to the sum of live buffers. XLA for CPU takes 1.1 to 1.35 times the sum,
// because it fuses less and pads; XLA for CUDA .85 to 1.19 times (bench/docs/gpu.md).
const unfusedCPU, unfusedCUDA = 1.25, 0.995

// estimateMemory estimates the memory that a compiler will need for a graph: the largest sum of buffers that live at
// once.
//
//   - A node is computed as soon as its inputs are, because XLA for CPU looks for concurrency. XLA for CUDA cuts
//     weights from the parameters only when they are read.
//   - Convolutions, products and sums have buffers, and so have the inputs of convolutions and products.
//   - Everything else is computed when it is read.
//   - A buffer lives until its last reader, which may read it through nodes without buffers.
func estimateMemory(outputs []*graph.Node, kind Kind) Memory {
	order := byTurn(reachable(outputs), kind == CUDA)
	output := map[*graph.Node]bool{}
	for _, node := range outputs {
		output[node] = true
	}
	m := borders(order, output)
	stored := storedNodes(order)
	place := make(map[*graph.Node]int, len(order))
	for i, node := range order {
		place[node] = i
	}
	last := make([]int, len(order))     // the place of the last reader of each node
	ending := make([]int64, len(order)) // bytes of buffers, by the place of their last reader
	for i, node := range slices.Backward(order) {
		read := max(i, last[i]) // where the node's inputs are read, if it has no buffer
		if stored[node] {
			if !output[node] {
				ending[read] += bytesOf(node)
			}
			read = i
		}
		for _, in := range node.Inputs() {
			last[place[in]] = max(last[place[in]], read)
		}
	}
	var live int64
	for i, node := range order {
		if stored[node] && !output[node] {
			live += bytesOf(node)
		}
		m.Temporary = max(m.Temporary, live)
		live -= ending[i]
	}
	unfused := unfusedCPU
	if kind == CUDA {
		unfused = unfusedCUDA
	}
	m.Temporary = int64(unfused * float64(m.Temporary))
	return m
}

// byTurn sorts nodes by the length of the longest path to each. With late, nodes that depend on one parameter alone are
// as late as their first reader.
func byTurn(order []*graph.Node, late bool) []*graph.Node {
	turn := make(map[*graph.Node]int, len(order))
	first := make(map[*graph.Node]int, len(order)) // the turn of a node's first reader
	weight := map[*graph.Node]bool{}
	for _, node := range order {
		inputs := node.Inputs()
		for _, in := range inputs {
			turn[node] = max(turn[node], turn[in]+1)
		}
		weight[node] = late && len(inputs) == 1 && (weight[inputs[0]] || inputs[0].Type() == graph.NodeTypeParameter)
	}
	for _, node := range slices.Backward(order) {
		if reader, ok := first[node]; ok && weight[node] {
			turn[node] = reader
		}
		for _, in := range node.Inputs() {
			if reader, ok := first[in]; !ok || turn[node] < reader {
				first[in] = turn[node]
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *graph.Node) int { return turn[a] - turn[b] })
	return order
}

// borders counts arguments and outputs. An output may take over the memory of a donated parameter of the same size.
func borders(order []*graph.Node, output map[*graph.Node]bool) (m Memory) {
	donated := map[int64]int{} // parameters, by size
	for _, node := range order {
		if node.Type() == graph.NodeTypeParameter {
			m.Arguments += bytesOf(node)
			if strings.HasPrefix(node.GetParameterName(), shim.DonorPrefix) {
				donated[bytesOf(node)]++
			}
		}
	}
	for node := range output {
		size := bytesOf(node)
		m.Outputs += size
		if donated[size] > 0 {
			donated[size]--
			m.Aliased += size
		}
	}
	return m
}

// storedNodes returns the nodes that have buffers.
func storedNodes(order []*graph.Node) map[*graph.Node]bool {
	stored := map[*graph.Node]bool{}
	for _, node := range order {
		switch node.Type() {
		case graph.NodeTypeConvGeneral, graph.NodeTypeDot, graph.NodeTypeDotGeneral:
			stored[node] = true
			for _, in := range node.Inputs() {
				// A reshape or identity shares its input's buffer.
				for in.Type() == graph.NodeTypeReshape || in.Type() == graph.NodeTypeIdentity {
					in = in.Inputs()[0]
				}
				if in.Type() != graph.NodeTypeParameter && in.Type() != graph.NodeTypeConstant {
					stored[in] = true
				}
			}
		case graph.NodeTypeReduceSum, graph.NodeTypeReduceMax, graph.NodeTypeReduceMin, graph.NodeTypeSplitNode:
			stored[node] = true
		}
	}
	return stored
}

// bytesOf returns the size of a node's value, 0 for a node with several: each of them has a node of its own.
func bytesOf(node *graph.Node) int64 {
	if node.NumOutputs() != 1 {
		return 0
	}
	return int64(node.Shape().Memory())
}

// Cost is the cost of one run of a program.
type Cost struct {
	FLOPs  int64  // see [Program.FLOPs]
	Memory Memory // an estimate
}

// Cost draws a program's graph, as [Device.Program] does, and returns the cost of a run. Nothing is compiled or kept.
func (d *Device) Cost(key string, build func(g *graph.Graph) []*graph.Node) (c Cost, err error) {
	if err := d.enter(); err != nil {
		return c, err
	}
	defer d.leave()
	g, outputs, err := draw(d.backend, &Program{key: key, build: build}, "main")
	if err != nil {
		return c, err
	}
	defer g.Finalize()
	return Cost{FLOPs: countFLOPs(outputs), Memory: estimateMemory(outputs, d.kind())}, nil
}

// countFLOPs counts the floating-point operations of the convolutions and matrix products that the outputs need; a
// multiply-add counts as two:
//
//	convolution   2 · |y| · |w| / C_out     including taps on padding and in holes
//	product       2 · |y| · Π contracted
func countFLOPs(outputs []*graph.Node) (total int64) {
	for _, node := range reachable(outputs) {
		in, size := node.Inputs(), 1
		switch node.Type() {
		case graph.NodeTypeConvGeneral:
			channels := node.Shape().Dimensions[nodes.Attribute[graph.ConvolveAxesConfig](node, "axes").OutputChannels]
			size = in[1].Shape().Size() / channels
		case graph.NodeTypeDot:
			size = in[0].Shape().Dimensions[in[0].Rank()-1]
		case graph.NodeTypeDotGeneral:
			for _, axis := range nodes.Ints(node, "lhsContractingAxes") {
				size *= in[0].Shape().Dimensions[axis]
			}
		default:
			continue
		}
		total += 2 * int64(node.Shape().Size()) * int64(size)
	}
	return total
}

// reachable lists the nodes that the outputs need, each after its inputs.
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
