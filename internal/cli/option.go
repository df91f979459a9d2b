package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// kind is the type of a setting's value.
type kind int

const (
	text   kind = iota // a string
	number             // a float64
	whole              // an int64
	seed               // a uint64
	toggle             // a bool
	object             // JSON on the command line and in the environment, a mapping in the file
)

// option is one setting. Its name is the key in the configuration file; the flag
// has dashes for underscores, the environment variable is ANISOFLIGHT_NAME.
type option struct {
	name   string
	kind   kind
	def    string // default as text; empty where another package decides
	usage  string // `word` in backquotes names the value in the help
	needed bool   // the command does nothing without it
	secret bool   // not to be shown
	local  bool   // of the process that has the device
}

func (o option) flag() string { return strings.ReplaceAll(o.name, "_", "-") }
func (o option) env() string  { return "ANISOFLIGHT_" + strings.ToUpper(o.name) }

// register defines the option's flag. Its value is kept as text, so that flag,
// environment and file go through the same parser, with the same errors.
func (o option) register(flags *pflag.FlagSet) {
	if o.kind == toggle {
		flags.Bool(o.flag(), o.def == "true", o.usage)
		return
	}
	usage := o.usage
	if o.needed {
		usage += " (required)"
	}
	flags.Var(&unparsed{text: o.def, kind: o.kind}, o.flag(), usage)
}

// unparsed is a flag's value before it is parsed.
type unparsed struct {
	text string
	kind kind
}

func (r *unparsed) String() string     { return r.text }
func (r *unparsed) Set(s string) error { r.text = s; return nil }
func (r *unparsed) Type() string       { return r.kind.String() }

func (k kind) String() string {
	switch k {
	case number:
		return "number"
	case whole, seed:
		return "integer"
	case toggle:
		return "bool"
	case object:
		return "JSON"
	}
	return "string"
}

// parse reads a value given as text.
func (k kind) parse(s string) (any, error) {
	switch k {
	case number:
		if x, err := strconv.ParseFloat(s, 64); err == nil {
			return x, nil
		}
		return nil, fmt.Errorf("must be a number, got %q", s)
	case whole:
		if x, err := strconv.ParseInt(s, 10, 64); err == nil {
			return x, nil
		}
		return nil, fmt.Errorf("must be a whole number, got %q", s)
	case seed:
		if x, err := strconv.ParseUint(s, 10, 64); err == nil {
			return x, nil
		}
		return nil, fmt.Errorf("must be a whole number between 0 and 2⁶⁴ − 1, got %q", s)
	case toggle:
		if x, err := strconv.ParseBool(s); err == nil {
			return x, nil
		}
		return nil, fmt.Errorf("must be true or false, got %q", s)
	case object:
		var x any
		if err := json.Unmarshal([]byte(s), &x); err != nil {
			// A bare word stands for a string: --grid edm.
			if !strings.ContainsAny(s, "{}[]\"") {
				return s, nil
			}
			return nil, fmt.Errorf("must be JSON, got %q: %w", s, err)
		}
		return x, nil
	}
	return s, nil
}
