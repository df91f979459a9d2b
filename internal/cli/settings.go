package cli

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

// settings holds a command's options, resolved: flag > environment > file > default.
type settings struct {
	values []value
}

// value is one option's value and where it comes from.
type value struct {
	option
	value  any    // of the option's kind; nil if unset
	source string // "flag --listen", "environment ANISOFLIGHT_LISTEN", "file configs/x.yaml", "default"
	given  bool   // by flag, environment or file
}

// place returns what the value is called where it was given.
func (v value) place() string {
	switch kind, where, _ := strings.Cut(v.source, " "); kind {
	case "flag", "environment":
		return where
	case "file":
		return v.name + " in " + where
	}
	return v.name
}

// resolve reads the options from all their places. The flags must have been parsed.
func resolve(options []option, flags *pflag.FlagSet) (*settings, error) {
	v := viper.New()
	v.SetEnvPrefix("anisoflight")
	file, content, err := readFile(options, flags, v)
	if err != nil {
		return nil, err
	}
	if err := v.MergeConfigMap(scalars(content)); err != nil {
		return nil, err
	}
	s := &settings{}
	for _, o := range options {
		if err := v.BindEnv(o.name, o.env()); err != nil {
			return nil, err
		}
		v.SetDefault(o.name, o.def)
		if err := v.BindPFlag(o.name, flags.Lookup(o.flag())); err != nil {
			return nil, err
		}
		val := value{option: o, source: "default"}
		_, inEnv := os.LookupEnv(o.env())
		raw, inFile := content[o.name]
		switch {
		case flags.Changed(o.flag()):
			val.source, val.given = "flag --"+o.flag(), true
		case inEnv && os.Getenv(o.env()) != "":
			val.source, val.given = "environment "+o.env(), true
		case inFile:
			val.source, val.given = "file "+file, true
		}
		switch raw.(type) {
		case []any, map[string]any:
			if o.kind != object {
				return nil, fmt.Errorf("%s (file %s) must be a single %s", o.name, file, o.kind)
			}
		}
		if strings.HasPrefix(val.source, "file ") && o.kind == object {
			val.value = raw
		} else if t := v.GetString(o.name); t != "" || val.given {
			if val.value, err = o.kind.parse(t); err != nil {
				return nil, fmt.Errorf("%s %w", val.place(), err)
			}
		}
		s.values = append(s.values, val)
	}
	return s, nil
}

// readFile reads the YAML file that --config or ANISOFLIGHT_CONFIG names, if any.
// A key that is no option of the command is an error.
func readFile(options []option, flags *pflag.FlagSet, v *viper.Viper) (name string, content map[string]any, err error) {
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
		if !slices.ContainsFunc(options, func(o option) bool { return o.name == key }) {
			return "", nil, fmt.Errorf("configuration file %s: unknown setting %q; known here: %s", name, key, names(options))
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

func names(options []option) string {
	var all []string
	for _, o := range options {
		all = append(all, o.name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (s *settings) get(name string) value {
	for _, v := range s.values {
		if v.name == name {
			return v
		}
	}
	panic("cli: no option " + name)
}

// text returns a text setting, empty if it is unset.
func (s *settings) text(name string) string {
	t, _ := s.get(name).value.(string)
	return t
}

// whole returns a whole number, 0 if it is unset.
func (s *settings) whole(name string) int64 {
	n, _ := s.get(name).value.(int64)
	return n
}

// number returns a number, 0 if it is unset.
func (s *settings) number(name string) float64 {
	x, _ := s.get(name).value.(float64)
	return x
}

func (s *settings) toggle(name string) bool {
	b, _ := s.get(name).value.(bool)
	return b
}

// request gathers the given ones of some options as the fields of a request. What
// was not given is left out: the engine knows the defaults.
func (s *settings) request(options []option) map[string]any {
	fields := map[string]any{}
	for _, o := range options {
		if v := s.get(o.name); v.given {
			fields[o.name] = v.value
		}
	}
	return fields
}
