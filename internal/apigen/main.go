// Apigen derives what others say of the API from flight/api: its operations, and the comments of its requests' fields.
//
// It is run by go generate ./flight/api and writes
//
//   - flight/api/fields_generated.go: the words of each field, for the help of flags;
//   - flight/client/operations_generated.go: the methods of the Go client;
//   - client_py/anisoflight/contract.py: which operations may be repeated, and the fields in docstrings;
//   - the signature of Client.sample in Python, the tables of docs/wire.md and the scopes of docs/operation.md, between
//     markers.
//
// Its test fails if any of them is stale. Begin with parse.go.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/flight/api"
)

func main() {
	root := "../.." // go generate runs in flight/api
	files, err := derive(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apigen:", err)
		os.Exit(1)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "apigen:", err)
			os.Exit(1)
		}
	}
}

// derive returns the contents of every derived file of the repository, by its path from the root.
func derive(root string) (map[string]string, error) {
	types, err := parse(root, "flight/api", "train")
	if err != nil {
		return nil, err
	}
	for name, request := range requests() {
		for i, described := range api.Fields(request) {
			f := &types[name].fields[i]
			f.words = described.Words
			if f.help+f.deflt == "" {
				return nil, fmt.Errorf("%s.%s has no comment", name, f.name)
			}
		}
	}
	files := map[string]string{"client_py/anisoflight/contract.py": types.contract()}
	if files["flight/api/fields_generated.go"], err = types.goFile(); err != nil {
		return nil, err
	}
	if files["flight/client/operations_generated.go"], err = types.clientFile(); err != nil {
		return nil, err
	}
	for name, sections := range map[string]map[string]string{
		"docs/wire.md": {
			"operations": types.operations(), "fields of Sample": types.fieldTable("api.Sample"),
			"actions": types.actions(), "schedule kinds": types.kinds(),
		},
		"docs/operation.md": {"scopes": scopes()},
		"client_py/anisoflight/operations/sampling.py": {
			"fields of Sample":  types.parameters("api.Sample"),
			"request of Sample": types.arguments("api.Sample"),
		},
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
