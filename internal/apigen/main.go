// Apigen derives what others say of the API from flight/api: its operations, and the comments of its requests' fields.
//
// It is run by go generate ./flight/api and writes
//
//   - flight/api/fields_generated.go: the words of each field, for the help of flags;
//   - flight/client/operations_generated.go: the methods of the Go client;
//   - client_py/anisoflight/wire/contract.py: which operations may be repeated, and the fields in docstrings;
//   - the signature of Client.sample in Python, the tables of docs/wire.md and the scopes of docs/operation.md, between
//     markers.
//
// Its test fails if any of them is stale. Begin with parse.go.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
)

func main() {
	root := "../.." // go generate runs in flight/api
	files, err := derive(root)
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "apigen:", err)
		os.Exit(1)
	}
}

// derive returns the contents of every derived file of the repository, by its path from the root.
func derive(root string) (map[string]string, error) {
	c, err := parse(root, "flight/api", "train")
	if err != nil {
		return nil, err
	}
	sample := reflect.TypeFor[api.Sample]()
	files := map[string]string{"client_py/anisoflight/wire/contract.py": c.contract()}
	if files["flight/api/fields_generated.go"], err = c.goFile(); err != nil {
		return nil, err
	}
	if files["flight/client/operations_generated.go"], err = clientFile(); err != nil {
		return nil, err
	}
	for name, sections := range map[string]map[string]string{
		"docs/wire.md": {
			"operations": c.operations(), "fields of Sample": c.fieldTable(sample), "actions": c.actions(),
			"schedule kinds": c.kinds(),
		},
		"docs/operation.md":                            {"scopes": scopes()},
		"client_py/anisoflight/operations/sampling.py": {"fields of Sample": c.keywords(sample)},
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		if files[name], err = fill(string(text), sections); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// fill replaces what stands between the markers of a text, `generated: NAME` and `end generated`, each on a line of its
// own, which it keeps.
func fill(text string, sections map[string]string) (string, error) {
	for name, section := range sections {
		between := regexp.MustCompile(`(?s)([^\n]*generated: ` + regexp.QuoteMeta(name) + `[^\n]*\n).*?([^\n]*end generated)`)
		if len(between.FindAllString(text, -1)) != 1 {
			return "", fmt.Errorf("one place for %q is wanted", name)
		}
		text = between.ReplaceAllString(text, "${1}"+strings.ReplaceAll(section, "$", "$$")+"${2}")
	}
	return text, nil
}
