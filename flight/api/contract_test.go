package api_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

var update = flag.Bool("update", false, "write testdata/contract.txt")

// TestContract compares the operations, the ways to reach them, their scopes, the fields of their requests and the
// columns of tables of numbers with testdata/contract.txt. A change of the contract changes that file, and CHANGELOG
// says so.
func TestContract(t *testing.T) {
	var b strings.Builder
	for _, op := range api.Operations() {
		var ways []string
		for way, name := range map[api.Way]string{
			api.ByAction: "action", api.ByGet: "get", api.ByExchange: "exchange", api.ByPut: "put",
		} {
			if op.By(way) {
				ways = append(ways, name)
			}
		}
		slices.Sort(ways)
		fmt.Fprintf(&b, "%s (%s; scope %s; reads only: %t)\n", op.Name, strings.Join(ways, ", "), op.Scope, op.Reads)
		for _, field := range fields(reflect.TypeOf(op.New()), nil) {
			fmt.Fprintf(&b, "    %s\n", field)
		}
		if op.Row != nil {
			for _, column := range api.ColumnsOf(reflect.TypeOf(op.Row)) {
				fmt.Fprintf(&b, "    -> %s %s\n", column.Name, column.Type)
			}
		}
	}
	const golden = "testdata/contract.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Split(b.String(), "\n")
	recorded := strings.Split(string(want), "\n")
	for i := range max(len(have), len(recorded)) {
		if i >= len(have) || i >= len(recorded) || have[i] != recorded[i] {
			t.Fatalf("line %d of the contract differs from %s:\n%s\nwant\n%s", i+1, golden, have[min(i, len(have)-1)],
				recorded[min(i, len(recorded)-1)])
		}
	}
}

// fields returns "name type" of each JSON field of a struct, nested structs with a dotted name, sorted.
func fields(t reflect.Type, outer []reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(outer, t) {
		return nil
	}
	outer = append(outer, t)
	var out []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			out = append(out, fields(field.Type, outer)...)
		case !field.IsExported() || name == "-" || name == "":
		default:
			out = append(out, name+" "+kind(field.Type))
			for _, inner := range fields(field.Type, outer) {
				out = append(out, name+"."+inner)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// kind names the JSON type of a Go type: where the field may be left out does not matter.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Slice, reflect.Array:
		return "list of " + kind(t.Elem())
	case reflect.Struct, reflect.Map, reflect.Interface:
		return "object"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	default:
		return t.Kind().String()
	}
}
