package nn

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/anisoflight/anisoflight/internal/base/jsonerror"
	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

// Check compares a state dict, one tensor at a time, with a network's. Make one with [Layout.Check]; values need not be
// kept after [Check.Add].
type Check struct {
	layout Layout
	place  map[string]int      // of the network's tensors
	faults map[int]*StateError // by the tensor's place; unknown tensors come last
	seen   map[string]bool
}

// Check begins a comparison. Constants may be missing, and must otherwise agree with the configuration. Optional
// parameters may be missing and are then zero. A tensor that is missing, unknown, repeated, of another shape or not
// finite is a fault, and so is what an entry's Check returns.
func (l Layout) Check() *Check {
	c := &Check{layout: l, place: make(map[string]int, len(l)), faults: map[int]*StateError{}, seen: map[string]bool{}}
	for i, e := range l {
		c.place[e.Name] = i
	}
	return c
}

// Add compares a tensor, and reports whether it is correct.
func (c *Check) Add(t Tensor) bool {
	place, known := c.place[t.Name]
	var reason string
	switch {
	case c.seen[t.Name]:
		reason = "is there twice"
	case !known:
		reason = "is unknown to the network of config.json"
	default:
		reason = c.layout[place].misfit(t)
	}
	c.seen[t.Name] = true
	if reason == "" {
		return true
	}
	if !known {
		place = len(c.layout) + len(c.faults)
	}
	c.faults[place] = &StateError{t.Name, reason}
	return false
}

// Skip notes that a tensor exists whose faults are reported elsewhere.
func (c *Check) Skip(name string) { c.seen[name] = true }

// Faults returns the faults after all tensors have been added: in the network's order, then unknown tensors.
func (c *Check) Faults() []*StateError {
	for i, e := range c.layout {
		if !c.seen[e.Name] && e.Constant == nil && !e.Optional {
			c.faults[i] = &StateError{e.Name, fmt.Sprintf("is missing; config.json asks for it with shape %v", e.Shape)}
		}
	}
	var out []*StateError
	for _, i := range slices.Sorted(maps.Keys(c.faults)) {
		out = append(out, c.faults[i])
	}
	return out
}

// misfit says what is wrong with a tensor of the entry's name, or returns "".
func (e Entry) misfit(t Tensor) string {
	if !slices.Equal(t.Shape, e.Shape) || len(t.Data) != e.Size() {
		return fmt.Sprintf("has shape %v and %d values; config.json asks for %v", t.Shape, len(t.Data), e.Shape)
	}
	same := func(a, b float32) bool { return math.Abs(float64(a-b)) <= 1e-6 }
	if e.Constant != nil && !slices.EqualFunc(t.Data, e.Constant, same) {
		return fmt.Sprintf("holds %v; config.json asks for %v", t.Data, e.Constant)
	}
	if i := slices.IndexFunc(t.Data, func(v float32) bool { return v-v != 0 }); i >= 0 {
		return fmt.Sprintf("holds %v at %d", t.Data[i], i)
	}
	if e.Check != nil {
		return e.Check(t.Data)
	}
	return ""
}

// ConfigError reports a field of a network's configuration that cannot be used.
type ConfigError struct {
	Field  string // as config.json names it; empty if the whole text cannot be used
	Reason string
}

func (e *ConfigError) Error() string {
	if e.Field == "" {
		return "network configuration: " + e.Reason
	}
	return "network configuration: " + e.Field + ": " + e.Reason
}

// ConfigErrorf returns a *[ConfigError].
func ConfigErrorf(field, format string, args ...any) error {
	return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// Rule is a condition on a field of a configuration.
type Rule struct {
	ok          bool
	field, must string
	got         any
}

// Must returns the rule that a field must be as described; ok says whether it is.
func Must(ok bool, field, must string, got any) Rule { return Rule{ok, field, must, got} }

// Integer returns the rule for an integer from lo to hi.
func Integer(field string, v, lo, hi int) Rule {
	return Rule{lo <= v && v <= hi, field, fmt.Sprintf("an integer from %d to %d", lo, hi), v}
}

// OneOf returns the rule for one of several words.
func OneOf(field, v string, allowed ...string) Rule {
	return Rule{slices.Contains(allowed, v), field, strings.Join(allowed, " or "), fmt.Sprintf("%.60q", v)}
}

// ImageRules returns the rules for the fields of all networks of images and classes.
func ImageRules(height, width, channels, labels, ratios int, classes []string) []Rule {
	const most = 1 << 16 // rows, columns and channels
	return []Rule{
		Integer("img_resolution", height, 1, most),
		Integer("img_resolution", width, 1, most),
		Integer("img_channels", channels, 1, most),
		Integer("label_dim", labels, 0, 1<<20),
		Integer("ratio_embedding", ratios, 0, most),
		Must(len(classes) == 0 || len(classes) == labels, "classes",
			fmt.Sprintf("no names or label_dim = %d of them", labels), len(classes)),
	}
}

// Broken returns a *[ConfigError] for the first broken rule.
func Broken(rules ...Rule) error {
	for _, r := range rules {
		if !r.ok {
			return ConfigErrorf(r.field, "must be %s, got %v", r.must, r.got)
		}
	}
	return nil
}

// DecodeConfig decodes one JSON object into a struct, strictly: unknown and repeated fields, values of another type and
// text after the object are a *[ConfigError]. what describes the fields in errors.
func DecodeConfig(data []byte, what string, to any) error {
	err := jsonv2.Unmarshal(data, to, jsonv2.RejectUnknownMembers(true))
	var section *ConfigError
	var syntax *jsontext.SyntacticError
	var wrong *jsonv2.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &section):
		return section
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return ConfigErrorf(fieldAt(syntax.JSONPointer), "is given twice; keep one")
	case !errors.As(err, &wrong) || wrong.JSONPointer == "":
		return ConfigErrorf("", "must be one JSON object of %s: %s", what, strings.TrimPrefix(err.Error(), "jsontext: "))
	case errors.Is(err, jsonv2.ErrUnknownName):
		reason := "unknown field; "
		if ask := suggest.DidYouMean(wrong.JSONPointer.LastToken(), fieldNames(to)); ask != "" {
			reason += ask + " "
		}
		return ConfigErrorf(fieldAt(wrong.JSONPointer), "%sdocs/checkpoints.md lists the fields", reason)
	}
	if _, custom := reflect.New(wrong.GoType).Interface().(json.Unmarshaler); custom {
		return ConfigErrorf(fieldAt(wrong.JSONPointer), "%v", wrong.Err)
	}
	must, got := jsonerror.TypeName(wrong.GoType), wrong.JSONKind.String()
	if wrong.GoType.Kind() == reflect.Int {
		must = "an integer"
	}
	if wrong.JSONValue != nil {
		got = string(wrong.JSONValue)
	}
	return ConfigErrorf(fieldAt(wrong.JSONPointer), "must be %s, got %.40s", must, got)
}

// fieldAt names a field as a.b.
func fieldAt(p jsontext.Pointer) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(p), "/"), "/", ".")
}

// fieldNames lists the JSON names of the fields of the struct that to points to.
func fieldNames(to any) (names []string) {
	t := reflect.TypeOf(to).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// StateError reports a tensor of a state dict that does not fit the network.
type StateError struct {
	Tensor string
	Reason string
}

func (e *StateError) Error() string { return "state dict: " + e.Tensor + ": " + e.Reason }
