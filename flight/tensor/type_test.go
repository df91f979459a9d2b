package tensor

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// What pyarrow 26 writes for fixed_shape_tensor(float32, [8, 8, 3], ...).
const (
	plain    = `{"shape":[8,8,3]}`
	named    = `{"shape":[8,8,3],"dim_names":["H","W","C"]}`
	identity = `{"shape":[8,8,3],"permutation":[0,1,2],"dim_names":["H","W","C"]}`
	cycle    = `{"shape":[8,8,3],"permutation":[2,0,1],"dim_names":["C","H","W"]}`
)

func storage(n int32) arrow.DataType { return arrow.FixedSizeListOf(n, arrow.PrimitiveTypes.Float32) }

func TestDescriptionIsPyarrows(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{{nil, plain}, {[]string{"H", "W", "C"}, named}} {
		typ, err := New(arrow.PrimitiveTypes.Float32, []int{8, 8, 3}, c.names)
		if err != nil {
			t.Fatal(err)
		}
		if got := typ.Serialize(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
		back, err := typ.Deserialize(storage(192), c.want)
		if err != nil {
			t.Fatal(err)
		}
		if !typ.ExtensionEquals(back) || !arrow.TypeEqual(typ, back) {
			t.Errorf("%s came back as %s", typ, back)
		}
	}
}

// What arrow-rs writes, and the identity permutation, say no more than is written here.
func TestOtherForms(t *testing.T) {
	for text, want := range map[string]string{
		`{"shape":[8,8,3],"dim_names":null,"permutations":null}`: plain,
		identity: named,
	} {
		typ, err := (*Type)(nil).Deserialize(storage(192), text)
		if err != nil || typ.Serialize() != want {
			t.Errorf("%s is written as %v, %v", text, typ, err)
		}
	}
}

func TestRefusedDescriptions(t *testing.T) {
	for name, c := range map[string]struct {
		storage arrow.DataType
		data    string
	}{
		"3-cycle":             {storage(192), cycle},
		"swap":                {storage(192), `{"shape":[8,8,3],"permutation":[1,0,2]}`},
		"permutations":        {storage(192), `{"shape":[8,8,3],"dim_names":null,"permutations":[0,1,2]}`},
		"short permutation":   {storage(192), `{"shape":[8,8,3],"permutation":[0,1]}`},
		"not JSON":            {storage(192), `shape`},
		"shape of words":      {storage(192), `{"shape":["8"]}`},
		"no shape":            {storage(192), `{}`},
		"another size":        {storage(191), plain},
		"negative":            {storage(192), `{"shape":[-8,-8,3]}`},
		"zero":                {storage(1), `{"shape":[0,8]}`},
		"product overflows":   {storage(1), `{"shape":[4294967296,4294967296]}`},
		"too few names":       {storage(192), `{"shape":[8,8,3],"dim_names":["H"]}`},
		"storage of no list":  {arrow.PrimitiveTypes.Float32, plain},
		"storage of any list": {arrow.ListOf(arrow.PrimitiveTypes.Float32), plain},
	} {
		typ, err := (*Type)(nil).Deserialize(c.storage, c.data)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: got %v, %v; want an *Error", name, typ, err)
		}
	}
}

func TestEqualityLooksAtEverything(t *testing.T) {
	f32, f64 := arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64
	of := func(value arrow.DataType, shape []int, names ...string) *Type {
		typ, err := New(value, shape, names)
		if err != nil {
			t.Fatal(err)
		}
		return typ
	}
	base := of(f32, []int{2, 3}, "H", "W")
	for _, other := range []*Type{
		of(f64, []int{2, 3}, "H", "W"), of(f32, []int{3, 2}, "H", "W"),
		of(f32, []int{2, 3}, "W", "H"), of(f32, []int{2, 3}),
	} {
		if base.ExtensionEquals(other) {
			t.Errorf("%s equals %s", base, other)
		}
	}
}
