// Package nodes reads the static parameters of a graph's nodes (axes, strides, paddings), which the graph library does
// not export. Begin at [Attribute].
package nodes

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// Attribute returns a static parameter of a node by the library's name, a field of an unexported struct. Callers must
// not change what it points to. A field that is missing or of another type panics: that can only follow an upgrade of
// the library, and tests of packages autodiff and device read every field that is used.
func Attribute[T any](node *graph.Node, name string) T {
	inputs := reflect.ValueOf(node).Elem().FieldByName("inputs").Elem().Elem()
	f := inputs.FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		panic(fmt.Sprintf("nodes: %s has no field %s of type %s; the graph library has changed, adapt package nodes' "+
			"callers to it", inputs.Type(), name, reflect.TypeFor[T]()))
	}
	return *(*T)(unsafe.Pointer(f.UnsafeAddr()))
}

// Ints returns a static parameter that is a list of numbers.
func Ints(node *graph.Node, name string) []int { return Attribute[[]int](node, name) }
