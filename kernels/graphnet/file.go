package graphnet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// A dim is a size: a number, or a multiple of the batch's.
type dim struct {
	n     int
	batch bool
}

func (d dim) of(batch int) int {
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

// A ref is the place of a node in the list.
type ref int

// node is an operation with its arguments: numbers (float64), bool, string, nil, ref, dim of
// the batch, and lists of those.
type node struct {
	name, op, module string
	target           string // of inputs and parameters
	args             map[string]any
	shape            []dim
	dtype            string
	frozen           bool
}

func (o *node) where() string {
	at := ""
	if o.module != "" {
		at = " in " + o.module
	}
	return fmt.Sprintf("node %s (%s%s)", o.name, o.op, at)
}

// program is a checked list of nodes, each after those that it uses.
type program struct {
	nodes  []node
	output ref
	params int // values of all parameters
	// badType says which node has a type that is unknown. It is told after operations without
	// a rule, which such types come from.
	badType error
}

func graphError(format string, args ...any) error {
	return nn.ConfigErrorf("graph", format, args...)
}

// rawNode is a node as JSON has it.
type rawNode struct {
	Name   string         `json:"name"`
	Op     string         `json:"op"`
	Target string         `json:"target"`
	Module string         `json:"module"`
	Args   map[string]any `json:"args"`
	Shape  []any          `json:"shape"`
	DType  string         `json:"dtype"`
	Frozen bool           `json:"frozen"`
}

// reader turns JSON into a program and counts what it takes.
type reader struct {
	program
	places  map[string]ref
	targets map[string]bool
	entries int
	total   float64
}

// readGraph decodes {"nodes": […], "output": NAME}. One node's text is in memory at a time
// beside what has been accepted, and the first that breaks a limit ends the reading.
func readGraph(text []byte) (*program, error) {
	r := &reader{places: map[string]ref{}, targets: map[string]bool{}}
	dec := json.NewDecoder(bytes.NewReader(text))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, graphError("must be an object of nodes and output")
	}
	output, found := "", map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, graphError("%v", err)
		}
		key, _ := tok.(string)
		if found[key] {
			return nil, graphError("%s is given twice", key)
		}
		found[key] = true
		switch key {
		case "nodes":
			err = r.nodesOf(dec)
		case "output":
			err = dec.Decode(&output)
		default:
			return nil, graphError("unknown field %q; the fields are nodes and output", shorten(key))
		}
		if err != nil {
			return nil, asGraphError(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, graphError("%v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, graphError("more than one JSON value")
	}
	at, ok := r.places[output]
	if !ok {
		return nil, graphError("output must be one of the %d nodes, got %q", len(r.nodes), shorten(output))
	}
	r.output = at
	return &r.program, nil
}

func asGraphError(err error) error {
	var e *nn.ConfigError
	if errors.As(err, &e) {
		return err
	}
	return graphError("%v", err)
}

func (r *reader) nodesOf(dec *json.Decoder) error {
	if tok, err := dec.Token(); err != nil || tok != json.Delim('[') {
		return graphError("nodes must be a list")
	}
	for dec.More() {
		if len(r.nodes) == maxNodes {
			return graphError("nodes must be at most %d, got more", maxNodes)
		}
		var text json.RawMessage
		if err := dec.Decode(&text); err != nil {
			return err
		}
		if err := r.add(text); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func (r *reader) add(text json.RawMessage) error {
	place := len(r.nodes)
	if len(text) > maxNodeText {
		return graphError("node %d must have at most %d bytes, got %d", place, maxNodeText, len(text))
	}
	if deep(text) {
		return graphError("node %d has lists more than %d deep", place, maxDepth)
	}
	var raw rawNode
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&raw); err != nil {
		return graphError("node %d: %v", place, err)
	}
	if raw.Name == "" || raw.Op == "" || len(raw.Name) > maxNameText || len(raw.Op) > maxNameText {
		return graphError("node %d: name and op must be given, up to %d bytes each", place, maxNameText)
	}
	if _, there := r.places[raw.Name]; there {
		return graphError("two nodes are named %q", shorten(raw.Name))
	}
	o := node{
		name: raw.Name, op: raw.Op, module: raw.Module, target: raw.Target, dtype: raw.DType,
		frozen: raw.Frozen,
	}
	fail := func(format string, args ...any) error {
		return graphError("%s: %s", o.where(), fmt.Sprintf(format, args...))
	}
	o.args = make(map[string]any, len(raw.Args))
	for name, a := range raw.Args {
		v, err := r.argument(a)
		if err != nil {
			return fail("%s: %v", shorten(name), err)
		}
		o.args[name] = v
	}
	if raw.Shape != nil || o.dtype != "" {
		shape, err := r.shapeOf(raw.Shape)
		if err != nil {
			return fail("shape: %v", err)
		}
		if _, ok := kinds[o.dtype]; !ok && r.badType == nil {
			r.badType = fail("dtype must be one of %s, got %q", knownTypes(), shorten(o.dtype))
		}
		o.shape = shape
	}
	if o.op == opParam {
		if err := r.parameter(&o); err != nil {
			return fail("%v", err)
		}
	}
	r.places[o.name] = ref(place)
	r.nodes = append(r.nodes, o)
	return nil
}

// deep reports whether lists and objects in the text of a node nest further than a node's own may.
func deep(text []byte) bool {
	depth, inside := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth+2 {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

func (r *reader) argument(a any) (any, error) {
	if r.entries++; r.entries > maxEntries {
		return nil, fmt.Errorf("the arguments of all nodes together hold more than %d values", maxEntries)
	}
	switch a := a.(type) {
	case nil, bool, float64:
		return a, nil
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
		out := make([]any, len(a))
		for i, v := range a {
			var err error
			if out[i], err = r.argument(v); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("%v is no argument", a)
}

// batchDim reads {"batch": n}.
func batchDim(a map[string]any) (dim, error) {
	n, ok := a["batch"].(float64)
	if !ok || len(a) != 1 || n != math.Trunc(n) || n < 1 || n > maxElements {
		return dim{}, fmt.Errorf(`must be a number, "%%NAME" of a node or {"batch": n}`)
	}
	return dim{n: int(n), batch: true}, nil
}

// shapeOf reads a shape of a size that is allowed.
func (r *reader) shapeOf(raw []any) ([]dim, error) {
	if len(raw) > maxRank {
		return nil, fmt.Errorf("must have at most %d axes, got %d", maxRank, len(raw))
	}
	out, size := make([]dim, len(raw)), 1.0
	for i, a := range raw {
		switch a := a.(type) {
		case float64:
			if a != math.Trunc(a) || a < 0 || a > maxElements {
				return nil, fmt.Errorf("a size must be an integer from 0 to %d, got %v", maxElements, a)
			}
			out[i] = dim{n: int(a)}
		case map[string]any:
			d, err := batchDim(a)
			if err != nil {
				return nil, err
			}
			out[i] = d
		default:
			return nil, fmt.Errorf("a size must be an integer or a multiple of the batch, got %v", a)
		}
		size *= float64(out[i].n)
	}
	if r.total += size; size > maxElements || r.total > maxTotal {
		return nil, fmt.Errorf("%v has %.3g values for one image, and all up to it %.3g; at most %.3g and %.3g",
			out, size, r.total, float64(maxElements), float64(maxTotal))
	}
	return out, nil
}

func (r *reader) parameter(o *node) error {
	if o.target == "" || len(o.target) > maxNameText {
		return fmt.Errorf("target must be the tensor's name in model.safetensors, up to %d bytes", maxNameText)
	}
	if r.targets[o.target] {
		return fmt.Errorf("two nodes stand for the tensor %q; list it once", shorten(o.target))
	}
	r.targets[o.target] = true
	size := 1
	for _, d := range o.shape {
		if d.batch || d.n < 1 {
			return fmt.Errorf("a parameter's sizes are positive and do not depend on the batch, got %v", o.shape)
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

// The operations that are not PyTorch's.
const (
	opInput  = "input"      // target: sample, noise, label or onehot
	opParam  = "param"      // target: the tensor's name
	opRatios = "add_ratios" // self [B, E] + W ρ, W zero until it is trained; nothing without ratio inputs
)
