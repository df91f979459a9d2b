package graphnet

import "slices"

// ConditionsParam names the buffer [K, …] whose row k is what the network is given of label k: the embeddings of a
// prompt, say. With an index for no class (none of the input label) that is the last row, and there are K − 1 labels.
const ConditionsParam = "conditions"

// Conditions describes the table of conditions of a network.
type Conditions struct {
	Labels int   `json:"labels"` // rows that labels choose; 1 of a network without labels
	None   bool  `json:"none"`   // whether one more row stands for no class
	Shape  []int `json:"shape"`  // of a row
}

// Conditions returns the network's table, or nil if it has none.
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
