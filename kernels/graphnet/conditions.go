package graphnet

import (
	"encoding/json"
	"slices"
)

// ConditionsParam names the buffer [K, …] whose row k is what the network is given of label k: the embeddings of a
// prompt, say. With an index for no class (none of the input label) that is the last row, and there are K − 1 labels.
const ConditionsParam = "conditions"

// Conditions describes the table of conditions of a network.
type Conditions struct {
	Labels int   `json:"labels"` // rows that labels choose; 1 of a network without labels
	None   bool  `json:"none"`   // whether one more row stands for no class
	Shape  []int `json:"shape"`  // of a row
}

// Rows returns the number of rows.
func (c Conditions) Rows() int {
	if c.None {
		return c.Labels + 1
	}
	return c.Labels
}

// Conditions returns the network's table, nil where it has none.
func (n *Net) Conditions() *Conditions {
	for _, p := range n.Params() {
		if p.Name != ConditionsParam || !p.Frozen || len(p.Shape) < 2 {
			continue
		}
		rows, labels := p.Shape[0], max(1, n.cfg.LabelDim)
		if rows == labels || rows == labels+1 {
			return &Conditions{Labels: labels, None: rows > labels, Shape: slices.Clone(p.Shape[1:])}
		}
	}
	return nil
}

// WithConditions returns the network with a table for so many labels, whose names are left out where they were fewer or
// more. A network without labels has one row, and stays as it is.
func (n *Net) WithConditions(labels int) (*Net, error) {
	have := n.Conditions()
	if have == nil || n.cfg.LabelDim == 0 || labels == have.Labels {
		return n, nil
	}
	var g map[string]any
	if err := json.Unmarshal(n.cfg.Graph, &g); err != nil {
		return nil, graphError("%v", err)
	}
	want := *have
	want.Labels = labels
	nodes, _ := g["nodes"].([]any)
	table := ""
	for _, node := range nodes {
		o, _ := node.(map[string]any)
		args, _ := o["args"].(map[string]any)
		target, _ := o["target"].(string)
		name, _ := o["name"].(string)
		switch {
		case o["op"] == opParam && target == ConditionsParam:
			table = name
			setFirst(o["shape"], want.Rows())
		case o["op"] == opInput && target == "label" && have.None:
			args["none"] = labels
		case table != "" && (args["self"] == "%"+table || args["input"] == "%"+table): // as rows of numbers
			setFirst(o["shape"], want.Rows())
			setFirst(args["size"], want.Rows())
			setFirst(args["shape"], want.Rows())
		}
	}
	text, err := json.Marshal(g)
	if err != nil {
		return nil, graphError("%v", err)
	}
	c := n.Config()
	c.Graph, c.LabelDim, c.Classes = text, labels, nil
	return New(c)
}

// setFirst sets the first size of a shape, if it is one.
func setFirst(shape any, n int) {
	if sizes, ok := shape.([]any); ok && len(sizes) > 0 {
		sizes[0] = n
	}
}
