package command

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anisoflight/anisoflight/internal/base/setting"
)

// Kind is the type of a setting's value.
type Kind int

// The kinds, with the Go types of their values.
const (
	Text   Kind = iota // a string
	Number             // a float64
	Whole              // an int64
	Seed               // a uint64
	Toggle             // a bool
	Object             // JSON on the command line and in the environment, a mapping in the file
)

// Option is one setting. Its name is the key in the configuration file; the flag
// has dashes for underscores, the environment variable is ANISOFLIGHT_NAME.
type Option struct {
	Name     string
	Kind     Kind
	Usage    string // `word` in backquotes names the value in the help
	Required bool   // the command fails without it

	// Default is the value, as text, of a setting that is not given. It is empty if another package has the default;
	// Otherwise describes that default in the help.
	Default, Otherwise string

	OneOf []string // values that completion offers; it does not restrict the value

	// Bounds are the tags of package setting, such as `min:"1"`, that bound a number. Without them it must be finite.
	Bounds reflect.StructTag
	List   bool // several words may be given, separated by commas

	// Type is that of the request's field, nil for other settings. It tells names from numbers within an Object.
	Type reflect.Type
}

// Flag returns the name of the flag, without leading dashes.
func (o Option) Flag() string { return strings.ReplaceAll(o.Name, "_", "-") }

// Env returns the name of the environment variable.
func (o Option) Env() string { return "ANISOFLIGHT_" + strings.ToUpper(o.Name) }

// register defines the option's flag. The flag keeps its value as text; [Kind.Parse] parses it later.
func (o Option) register(flags *pflag.FlagSet) {
	usage := o.Usage
	switch {
	case o.Required:
		usage += " (required)"
	case strings.Contains(o.Otherwise, " "):
		usage += " (default: " + o.Otherwise + ")"
	case o.Otherwise != "":
		usage += " (default " + o.Otherwise + ")"
	}
	if o.Kind == Toggle {
		flags.Bool(o.Flag(), o.Default == "true", usage)
		return
	}
	value := &unparsed{text: o.Default, name: o.Kind.String()}
	switch {
	case o.List:
		value.name = "list"
	case o.Kind == Text && strings.HasPrefix(o.Usage, "name of "):
		value.name = "name"
	}
	flags.Var(value, o.Flag(), usage)
}

// isName reports whether a value of type t that is no mapping and no list is a text: a string, or a name in place of a
// mapping.
func isName(t reflect.Type) bool {
	return t != nil && (t.Kind() == reflect.String || t.Kind() == reflect.Struct)
}

// elementType returns the type of the elements of a list of type t, nil if it is unknown.
func elementType(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Slice {
		return t.Elem()
	}
	return nil
}

// parse parses the text of a value. Names are as written: 1.10 is no number.
func (o Option) parse(text string) (any, error) {
	if o.Kind == Object && (isName(o.Type) || isName(elementType(o.Type))) && !strings.ContainsAny(text, "{}[]\"") {
		return text, nil
	}
	return o.Kind.Parse(text)
}

// check returns the error of a value that the option's bounds do not allow, or that no request can have.
func (o Option) check(value any) error {
	if o.Kind == Object {
		if _, err := json.Marshal(value); err != nil {
			return fmt.Errorf("--%s must hold finite numbers: %w", o.Flag(), err)
		}
	} else if err := setting.CheckNumber("--"+o.Flag(), reflect.ValueOf(value), o.Bounds); err != nil {
		return err
	}
	return nil
}

// complete returns completions of a value: words of OneOf, files, folders, or nothing.
func (o Option) complete(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if o.OneOf == nil {
		switch value, _ := pflag.UnquoteUsage(cmd.Flags().Lookup(o.Flag())); value {
		case "file", "path":
			return nil, cobra.ShellCompDirectiveDefault
		case "folder":
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	before := ""
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if o.List {
		directive |= cobra.ShellCompDirectiveNoSpace
		before = typed[:strings.LastIndex(typed, ",")+1]
	}
	var fit []cobra.Completion
	for _, w := range o.OneOf {
		if w = before + w; strings.HasPrefix(w, typed) {
			fit = append(fit, w)
		}
	}
	return fit, directive
}

// unparsed is a flag's value before it is parsed.
type unparsed struct {
	text string
	name string // name of the value in the help
}

func (r *unparsed) String() string     { return r.text }
func (r *unparsed) Set(s string) error { r.text = s; return nil }
func (r *unparsed) Type() string       { return r.name }

func (k Kind) String() string {
	switch k {
	case Number:
		return "number"
	case Whole, Seed:
		return "integer"
	case Toggle:
		return "bool"
	case Object:
		return "JSON"
	}
	return "string"
}

// Parse parses the text of a value.
func (k Kind) Parse(s string) (any, error) {
	switch k {
	case Number:
		if x, err := strconv.ParseFloat(s, 64); err == nil {
			return x, nil
		}
		return nil, fmt.Errorf("must be a number, got %q", s)
	case Whole:
		if x, err := strconv.ParseInt(s, 10, 64); err == nil {
			return x, nil
		}
		return nil, fmt.Errorf("must be a whole number, got %q", s)
	case Seed:
		if x, err := strconv.ParseUint(s, 10, 64); err == nil {
			return x, nil
		}
		return nil, fmt.Errorf("must be a whole number between 0 and 2⁶⁴ − 1, got %q", s)
	case Toggle:
		if x, err := strconv.ParseBool(s); err == nil {
			return x, nil
		}
		return nil, fmt.Errorf("must be true or false, got %q", s)
	case Object:
		var x any
		if err := json.Unmarshal([]byte(s), &x); err != nil {
			// A word without quotes is a string: --grid edm.
			if !strings.ContainsAny(s, "{}[]\"") {
				return s, nil
			}
			return nil, fmt.Errorf("must be JSON, got %q: %w", s, err)
		}
		return x, nil
	}
	return s, nil
}

// Words splits a list at commas and spaces.
func Words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
