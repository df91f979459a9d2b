package graphnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// The operations that are not PyTorch's.
const (
	opInput  = "input"      // target: sample, noise, label or onehot
	opParam  = "param"      // target: the tensor's name
	opRatios = "add_ratios" // self [B, E] + W ρ, W zero until it is trained; nothing without ratio inputs
)

// A dim is a size: a number, or a multiple of the batch's, which JSON writes as {"batch": n}.
type dim struct {
	n     int
	batch bool
}

func (d dim) size(batch int) int {
	if d.batch {
		return d.n * batch
	}
	return d.n
}

func (d dim) String() string {
	if d.batch {
		return fmt.Sprintf("%d×batch", d.n)
	}
	return fmt.Sprint(d.n)
}

// UnmarshalJSON reads a size of a shape.
func (d *dim) UnmarshalJSON(text []byte) (err error) {
	var a any
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	if times, ok := a.(map[string]any); ok {
		*d, err = batchDim(times)
		return err
	}
	n, ok := a.(float64)
	if !ok || n != math.Trunc(n) || n < 0 || n > maxElements {
		return fmt.Errorf("a size must be an integer from 0 to %d, or a multiple of the batch, got %v", maxElements, a)
	}
	*d = dim{n: int(n)}
	return nil
}

// batchDim reads {"batch": n}.
func batchDim(a map[string]any) (dim, error) {
	n, ok := a["batch"].(float64)
	if !ok || len(a) != 1 || n != math.Trunc(n) || n < 1 || n > maxElements {
		return dim{}, errors.New(`must be a number, "%NAME" of a node or {"batch": n}`)
	}
	return dim{n: int(n), batch: true}, nil
}

// A ref is the place of a node in the list.
type ref int

// node is an operation with its arguments: numbers (float64), bool, string, nil, ref, dim of the batch, and lists of
// those.
type node struct {
	Name   string         `json:"name"`
	Op     string         `json:"op"`
	Target string         `json:"target"` // of inputs and parameters
	Module string         `json:"module"`
	Args   map[string]any `json:"args"`
	Shape  []dim          `json:"shape"`
	DType  string         `json:"dtype"`
	Frozen bool           `json:"frozen"`
}

func (o *node) where() string {
	if o.Module == "" {
		return fmt.Sprintf("node %s (%s)", shorten(o.Name), shorten(o.Op))
	}
	return fmt.Sprintf("node %s (%s in %s)", shorten(o.Name), shorten(o.Op), shorten(o.Module))
}

// program is a checked list of nodes, each after those that it uses.
type program struct {
	nodes  []node
	output ref
	params int // values of all parameters
	// badType says which node has an unknown type. Operations without a rule, which are the cause of such types, are
	// reported first.
	badType error
}

func graphError(format string, args ...any) error {
	return nn.ConfigErrorf("graph", format, args...)
}

// decode reads an object strictly. prefix begins the error's words.
func decode(text []byte, prefix, what string, to any) error {
	err := nn.DecodeConfig(text, what, to)
	var wrong *nn.ConfigError
	if errors.As(err, &wrong) {
		return graphError("%s%s: %s", prefix, wrong.Field, wrong.Reason)
	}
	return err
}

// reader turns JSON into a program and counts what it takes.
type reader struct {
	program
	places  map[string]ref
	targets map[string]bool
	total   float64
}

// readGraph decodes {"nodes": […], "output": NAME}. The first node that breaks a limit ends the reading.
func readGraph(text []byte) (*program, error) {
	var raw struct {
		Nodes  []json.RawMessage `json:"nodes"`
		Output string            `json:"output"`
	}
	if err := decode(text, "", "nodes and output", &raw); err != nil {
		return nil, err
	}
	if len(raw.Nodes) > maxNodes {
		return nil, graphError("nodes must be at most %d, got %d", maxNodes, len(raw.Nodes))
	}
	r := &reader{places: map[string]ref{}, targets: map[string]bool{}}
	for _, text := range raw.Nodes {
		if err := r.add(text); err != nil {
			return nil, err
		}
	}
	at, ok := r.places[raw.Output]
	if !ok {
		return nil, graphError("output must be one of the %d nodes, got %q", len(r.nodes), shorten(raw.Output))
	}
	r.output = at
	return &r.program, nil
}

func (r *reader) add(text []byte) error {
	place := len(r.nodes)
	if len(text) > maxNodeText {
		return graphError("node %d must have at most %d bytes, got %d", place, maxNodeText, len(text))
	}
	var o node
	if err := decode(text, fmt.Sprintf("node %d: ", place), "a node's fields", &o); err != nil {
		return err
	}
	if o.Name == "" || o.Op == "" {
		return graphError("node %d: name and op must be given", place)
	}
	if _, there := r.places[o.Name]; there {
		return graphError("two nodes are named %q", shorten(o.Name))
	}
	fail := func(format string, args ...any) error {
		return graphError("%s: %s", o.where(), fmt.Sprintf(format, args...))
	}
	for name, a := range o.Args {
		v, err := r.argument(a, 0)
		if err != nil {
			return fail("%s: %v", shorten(name), err)
		}
		o.Args[name] = v
	}
	if err := r.checkSize(o.Shape); err != nil {
		return fail("shape: %v", err)
	}
	if _, ok := kinds[o.DType]; !ok && (o.Shape != nil || o.DType != "") && r.badType == nil {
		r.badType = fail("dtype must be one of %s, got %q", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "),
			shorten(o.DType))
	}
	if o.Op == opParam {
		if err := r.parameter(&o); err != nil {
			return fail("%v", err)
		}
	}
	r.places[o.Name] = ref(place)
	r.nodes = append(r.nodes, o)
	return nil
}

// argument returns a node's argument with the places of the nodes that it names.
func (r *reader) argument(a any, depth int) (any, error) {
	switch a := a.(type) {
	case string:
		switch a { // what JSON cannot write
		case "inf":
			return math.Inf(1), nil
		case "-inf":
			return math.Inf(-1), nil
		}
		name, isRef := strings.CutPrefix(a, "%")
		if !isRef {
			return a, nil
		}
		place, ok := r.places[name]
		if !ok {
			return nil, fmt.Errorf("uses %q, which is no node before it; nodes stand in the order of their computation, "+
				"without cycles", shorten(name))
		}
		return place, nil
	case map[string]any:
		return batchDim(a)
	case []any:
		if depth == maxDepth {
			return nil, fmt.Errorf("lists are more than %d deep", maxDepth)
		}
		out := make([]any, len(a))
		for i, v := range a {
			var err error
			if out[i], err = r.argument(v, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return a, nil // a number, true, false or null
}

// checkSize checks a shape against the limits.
func (r *reader) checkSize(shape []dim) error {
	if len(shape) > maxRank {
		return fmt.Errorf("must have at most %d axes, got %d", maxRank, len(shape))
	}
	size := 1.0
	for _, d := range shape {
		size *= float64(d.n)
	}
	if shape == nil {
		size = 0
	}
	if r.total += size; size > maxElements || r.total > maxTotal {
		return fmt.Errorf("%v has %.3g values for one image, and all up to it %.3g; at most %.3g and %.3g",
			shape, size, r.total, float64(maxElements), float64(maxTotal))
	}
	return nil
}

func (r *reader) parameter(o *node) error {
	if o.Target == "" {
		return errors.New("target must be the tensor's name in model.safetensors")
	}
	if r.targets[o.Target] {
		return fmt.Errorf("two nodes stand for the tensor %q; list it once", shorten(o.Target))
	}
	r.targets[o.Target] = true
	size := 1
	for _, d := range o.Shape {
		if d.batch || d.n < 1 {
			return fmt.Errorf("a parameter's sizes are positive and do not depend on the batch, got %v", o.Shape)
		}
		size *= d.n
	}
	if r.params += size; r.params > maxParams {
		return fmt.Errorf("the network has more than %d parameters", maxParams)
	}
	return nil
}

// shorten cuts what a file says to what a message can hold.
func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
