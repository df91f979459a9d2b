package graphnet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"sync"

	lib "github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// board draws graphs without computing anything.
var board = sync.OnceValues(func() (*device.Device, error) { return device.Open(device.Config{Plugin: "go"}) })

// drawBatch is the batch that a graph is drawn with: one that no size of a file's is by chance.
const drawBatch = 7

// draw builds the network once and returns what does not fit together.
func (n *Net) draw() error {
	dev, err := board()
	if err != nil {
		return err
	}
	cost, err := dev.Cost(n.key, func(g *graph.Graph) []*graph.Node { return []*graph.Node{n.drawn(g)} })
	var bad *nn.ConfigError
	switch {
	case errors.As(err, &bad):
		return bad
	case err != nil:
		return graphError("%s", shortLine(err.Error()))
	case cost.FLOPs < 0 || float64(cost.FLOPs) > maxFLOPs*drawBatch:
		return graphError("one evaluation takes %.3g operations an image; at most %.3g",
			float64(cost.FLOPs)/drawBatch, maxFLOPs)
	}
	return nil
}

func (n *Net) drawn(g *graph.Graph) *Node {
	arg := func(name string, dims ...int) *Node {
		return graph.Parameter(g, name, shapes.Make(lib.Float32, dims...))
	}
	var values []*Node
	for i, p := range n.Params() {
		values = append(values, arg(fmt.Sprintf("p%d", i), p.DeviceShape()...))
	}
	c := n.cfg
	z := arg("z", drawBatch, c.ImgResolution.Height, c.ImgResolution.Width, c.ImgChannels)
	var ratios, label *Node
	if c.RatioEmbedding > 0 {
		ratios = arg("ratios", drawBatch, c.RatioEmbedding)
	}
	if c.LabelDim > 0 {
		label = arg("label", drawBatch, c.LabelDim)
	}
	return n.Raw(nn.NewScope(n.Params(), values), z, arg("noise", drawBatch), ratios, label)
}

// known holds the networks that have been parsed last: a server lists its models often.
var known, _ = lru.New[[sha256.Size]byte, *Net](16)

func remembered(config []byte, parse func() (*Net, error)) (*Net, error) {
	key := sha256.Sum256(config)
	if n, ok := known.Get(key); ok {
		return n, nil
	}
	n, err := parse()
	if err != nil {
		return nil, err
	}
	known.Add(key, n)
	return n, nil
}

func sqrt(n int) float64 { return math.Sqrt(float64(max(n, 1))) }
