package recipe

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Load reads a recipe and those that it starts from, checked. A mistake in one is an *[Error].
func Load(file string) (*Recipe, error) { return load(file, false, nil) }

// Twin reads the scaled-down twin of a recipe.
func Twin(file string) (*Recipe, error) { return load(file, true, nil) }

func load(file string, twin bool, inside []string) (*Recipe, error) {
	file = filepath.Clean(file)
	if slices.Contains(inside, file) {
		return nil, &Error{file, "after", "it starts from itself, by way of " + strings.Join(inside[1:], ", ")}
	}
	r := &Recipe{File: file}
	if err := r.read(file, nil); err != nil {
		return nil, err
	}
	if twin {
		if r.Twin.IsZero() {
			return nil, r.errorf("twin", "it is missing: the recipe has no scaled-down twin")
		}
		text, err := yaml.Marshal(&r.Twin)
		if err != nil {
			return nil, err
		}
		if err := r.decode(text); err != nil {
			return nil, r.errorf("twin", "%v", err)
		}
	}
	if r.After != "" {
		var err error
		if r.parent, err = load(filepath.Join(filepath.Dir(file), r.After), twin, append(inside, file)); err != nil {
			return nil, err
		}
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// read reads a file over its base: entries of the file hold, those that it lacks are the base's.
func (r *Recipe) read(file string, inside []string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{file, "", "there is no such file" + others(file)}
	} else if err != nil {
		return err
	}
	var head struct {
		Base string         `yaml:"base"`
		Rest map[string]any `yaml:",inline"`
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return &Error{file, "", err.Error()}
	}
	if head.Base != "" {
		base := filepath.Join(filepath.Dir(file), head.Base)
		if slices.Contains(inside, base) {
			return &Error{file, "base", "it is its own base, by way of " + strings.Join(inside, ", ")}
		}
		if err := r.read(base, append(inside, file)); err != nil {
			return err
		}
	}
	if err := r.decode(text); err != nil {
		return &Error{file, "", err.Error()}
	}
	return nil
}

// decode reads entries over those there are; mappings are merged, lists replaced.
func (r *Recipe) decode(text []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(r); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// others says which files there are beside one that is not.
func others(file string) string {
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*.yaml"))
	if len(found) == 0 {
		return ""
	}
	for i, f := range found {
		found[i] = filepath.Base(f)
	}
	return "; in that folder are " + strings.Join(found, ", ")
}
