package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// Settings holds a command's options, resolved: flag > environment > file > default.
type Settings struct {
	Values []Value
}

// Value is one option's value and where it comes from.
type Value struct {
	Option
	Value  any    // of the option's kind; nil if unset
	Source string // "flag --listen", "environment ANISOFLIGHT_LISTEN", "file configs/x.yaml", "default"
	Given  bool   // by flag, environment or file
}

// place returns what the value is called where it was given.
func (v Value) place() string {
	switch kind, where, _ := strings.Cut(v.Source, " "); kind {
	case "flag", "environment":
		return where
	case "file":
		return v.Name + " in " + where
	}
	return v.Name
}

// Resolve reads the options from all their places. The flags must have been parsed.
func Resolve(options []Option, flags *pflag.FlagSet) (*Settings, error) {
	v := viper.New()
	v.SetEnvPrefix("anisoflight")
	file, content, err := readFile(options, flags, v)
	if err != nil {
		return nil, err
	}
	if err := v.MergeConfigMap(scalars(content)); err != nil {
		return nil, err
	}
	s := &Settings{}
	for _, o := range options {
		if err := v.BindEnv(o.Name, o.Env()); err != nil {
			return nil, err
		}
		v.SetDefault(o.Name, o.Default)
		if err := v.BindPFlag(o.Name, flags.Lookup(o.Flag())); err != nil {
			return nil, err
		}
		val := Value{Option: o, Source: "default"}
		_, inEnv := os.LookupEnv(o.Env())
		raw, inFile := content[o.Name]
		switch {
		case flags.Changed(o.Flag()):
			val.Source, val.Given = "flag --"+o.Flag(), true
		case inEnv && os.Getenv(o.Env()) != "":
			val.Source, val.Given = "environment "+o.Env(), true
		case inFile:
			val.Source, val.Given = "file "+file, true
		}
		switch raw.(type) {
		case []any, map[string]any:
			if o.Kind != Object {
				return nil, fmt.Errorf("%s (file %s) must be a single %s", o.Name, file, o.Kind)
			}
		}
		if strings.HasPrefix(val.Source, "file ") && o.Kind == Object {
			val.Value = raw
		} else if t := v.GetString(o.Name); t != "" || val.Given {
			if val.Value, err = o.Kind.Parse(t); err != nil {
				return nil, fmt.Errorf("%s %w", val.place(), err)
			}
		}
		s.Values = append(s.Values, val)
	}
	return s, nil
}

// readFile reads the YAML file that --config or ANISOFLIGHT_CONFIG names, if any.
// A key that is no option of the command is an error.
func readFile(options []Option, flags *pflag.FlagSet, v *viper.Viper) (name string, content map[string]any, err error) {
	if err := v.BindEnv("config"); err != nil {
		return "", nil, err
	}
	if err := v.BindPFlag("config", flags.Lookup("config")); err != nil {
		return "", nil, err
	}
	if name = v.GetString("config"); name == "" {
		return "", nil, nil
	}
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("configuration file %s does not exist", name)
	} else if err != nil {
		return "", nil, fmt.Errorf("configuration file: %w", err)
	}
	if err := yaml.Unmarshal(raw, &content); err != nil {
		return "", nil, fmt.Errorf("configuration file %s: %w", name, err)
	}
	for key := range content {
		if !slices.ContainsFunc(options, func(o Option) bool { return o.Name == key }) {
			return "", nil, fmt.Errorf("configuration file %s: unknown setting %q%s; --help lists them", name, key,
				asking(key, names(options)))
		}
	}
	return name, content, nil
}

// scalars leaves nested values out: viper would fold the case of their keys, in place.
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

func names(options []Option) []string {
	var all []string
	for _, o := range options {
		all = append(all, o.Name)
	}
	slices.Sort(all)
	return all
}

// Get returns the setting of that name; the zero Value if the command has none.
func (s *Settings) Get(name string) Value {
	for _, v := range s.Values {
		if v.Name == name {
			return v
		}
	}
	return Value{}
}

// Text returns a text setting, empty if it is unset or the command has none, as the other types.
func (s *Settings) Text(name string) string {
	t, _ := s.Get(name).Value.(string)
	return t
}

// Whole returns a whole number, 0 if it is unset.
func (s *Settings) Whole(name string) int64 {
	n, _ := s.Get(name).Value.(int64)
	return n
}

// Number returns a number, 0 if it is unset.
func (s *Settings) Number(name string) float64 {
	x, _ := s.Get(name).Value.(float64)
	return x
}

// Toggle returns a switch, false if it is unset.
func (s *Settings) Toggle(name string) bool {
	b, _ := s.Get(name).Value.(bool)
	return b
}

// Request gathers the given ones of some options as the fields of a request. What
// was not given is left out: the engine knows the defaults.
func (s *Settings) Request(options []Option) map[string]any {
	fields := map[string]any{}
	for _, o := range options {
		if v := s.Get(o.Name); v.Given {
			fields[o.Name] = v.Value
			if o.List && o.Kind == Object {
				fields[o.Name] = listed(v.Value)
			}
		}
	}
	return fields
}

// listed returns a list for words with commas between, or for a single number.
func listed(value any) any {
	switch value := value.(type) {
	case float64, int:
		return []any{value}
	case string:
		list := []any{}
		for _, word := range Words(value) {
			if one, err := Object.Parse(word); err == nil {
				list = append(list, one)
			} else {
				list = append(list, word)
			}
		}
		return list
	}
	return value
}
