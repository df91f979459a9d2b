package command

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// Settings holds the values of a command's options by name.
type Settings struct {
	values map[string]any // values of the options' kinds, given or default
	given  map[string]bool
}

// Resolve returns the values of options: flag > environment > file > default. The flags must have been parsed.
func Resolve(options []Option, flags *pflag.FlagSet) (*Settings, error) {
	v := viper.New()
	v.SetEnvPrefix("anisoflight")
	bind := func(o Option) error {
		return errors.Join(v.BindEnv(o.Name, o.Env()), v.BindPFlag(o.Name, flags.Lookup(o.Flag())))
	}
	if err := bind(Option{Name: "config"}); err != nil {
		return nil, err
	}
	content, err := readFile(expandHome(v.GetString("config")), options)
	if err != nil {
		return nil, err
	}
	if err := v.MergeConfigMap(scalars(content)); err != nil {
		return nil, err
	}
	s := &Settings{values: map[string]any{}, given: map[string]bool{}}
	for _, o := range options {
		if err := bind(o); err != nil {
			return nil, err
		}
		text := expandHome(v.GetString(o.Name)) // the flag's default if nobody gave it
		nested, inFile := content[o.Name]
		s.given[o.Name] = v.IsSet(o.Name) || inFile
		switch {
		case inFile && !v.IsSet(o.Name) && o.Kind != Object:
			return nil, fmt.Errorf("%s in %s must be a single %s", o.Name, v.GetString("config"), o.Kind)
		case inFile && !v.IsSet(o.Name):
			s.values[o.Name] = nested
		case s.given[o.Name] || text != "":
			if s.values[o.Name], err = o.parse(text); err != nil {
				return nil, fmt.Errorf("--%s %w", o.Flag(), err)
			}
		}
		if err := o.check(s.values[o.Name]); s.given[o.Name] && err != nil {
			return nil, err
		}
	}
	return s, nil
}

// expandHome replaces ~ at the beginning of a path, as a shell does.
func expandHome(text string) string {
	if home, err := os.UserHomeDir(); err == nil && (text == "~" || strings.HasPrefix(text, "~/")) {
		return home + text[1:]
	}
	return text
}

// readFile reads the YAML file called name, unless name is empty. A key that is not an option is an error.
func readFile(name string, options []Option) (content map[string]any, err error) {
	if name == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("configuration file %s does not exist", name)
	} else if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal(raw, &nodes); err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", name, err)
	}
	known, content := map[string]Option{}, map[string]any{}
	for _, o := range options {
		known[o.Name] = o
	}
	for key, node := range nodes {
		o, ok := known[key]
		if !ok {
			return nil, fmt.Errorf("configuration file %s: unknown setting %q%s; --help lists them", name, key,
				didYouMean(key, slices.Sorted(maps.Keys(known))))
		}
		asWritten(&node, o.Type, o.Kind == Text || o.Kind == Object)
		var value any
		if err := node.Decode(&value); err != nil {
			return nil, fmt.Errorf("configuration file %s: %s: %w", name, key, err)
		}
		content[key] = value
	}
	return content, nil
}

// octal matches what YAML 1.1 reads as a number to base 8.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// asWritten makes texts of scalars that YAML reads as dates or as octal numbers: 2026-11-28, 010. If isText is true, it
// makes a text of any other scalar, too, such as 1.10, 1e3 and null; so are the names in a mapping or list of type t.
func asWritten(node *yaml.Node, t reflect.Type, isText bool) {
	if node.Kind == yaml.AliasNode && isText && node.Alias.Kind == yaml.ScalarNode {
		*node = *node.Alias // a copy: the anchor may be a number
		node.Anchor = ""
	}
	for i, value := range node.Content {
		inside := elementType(t)
		if node.Kind == yaml.MappingNode {
			inside = nil
			if i%2 == 1 {
				inside = fieldType(t, node.Content[i-1].Value)
			}
		}
		asWritten(value, inside, isName(inside))
	}
	tag := node.ShortTag()
	if node.Kind != yaml.ScalarNode || tag == "!!str" || node.Value == "" {
		return
	}
	if isText || tag == "!!timestamp" || tag == "!!int" && octal.MatchString(node.Value) {
		node.SetString(node.Value)
	}
}

// fieldType returns the type of the field that JSON calls name in a structure of type t, nil if it is unknown.
func fieldType(t reflect.Type, name string) reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type
		}
	}
	return nil
}

// scalars returns the content without nested values: viper would change the case of their keys in place.
func scalars(content map[string]any) map[string]any {
	flat := map[string]any{}
	for key, v := range content {
		switch v.(type) {
		case map[string]any, []any:
		default:
			flat[key] = v
		}
	}
	return flat
}

// Given reports whether a setting was given by flag, environment or file.
func (s *Settings) Given(name string) bool { return s.given[name] }

// Value returns the value of a setting; nil if it has none or the command does not have the setting.
func (s *Settings) Value(name string) any { return s.values[name] }

// Text returns the value of a text setting, empty if it has none.
func (s *Settings) Text(name string) string { return valueOf[string](s, name) }

// Whole returns the value of a whole number, 0 if it has none.
func (s *Settings) Whole(name string) int64 { return valueOf[int64](s, name) }

// Number returns the value of a number, 0 if it has none.
func (s *Settings) Number(name string) float64 { return valueOf[float64](s, name) }

// Toggle returns the value of a switch, false if it has none.
func (s *Settings) Toggle(name string) bool { return valueOf[bool](s, name) }

func valueOf[T any](s *Settings, name string) T {
	value, _ := s.values[name].(T)
	return value
}

// Request returns the fields of a request: the options that were given.
func (s *Settings) Request(options []Option) map[string]any {
	fields := map[string]any{}
	for _, o := range options {
		if !s.given[o.Name] {
			continue
		}
		fields[o.Name] = s.values[o.Name]
		if o.List && o.Kind == Object {
			fields[o.Name] = o.listed(s.values[o.Name])
		}
	}
	return fields
}

// listed returns a list for words separated by commas, or for a single number.
func (o Option) listed(value any) any {
	switch value := value.(type) {
	case float64:
		return []any{value}
	case string:
		list := []any{}
		for _, word := range Words(value) {
			one, err := o.parse(word)
			if err != nil {
				one = word
			}
			list = append(list, one)
		}
		return list
	}
	return value
}
