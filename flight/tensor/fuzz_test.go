package tensor

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// FuzzDeserialize reads descriptions. What is taken has as many numbers as its storage, and is read back the same from
// what it writes.
func FuzzDeserialize(f *testing.F) {
	f.Add(int32(12), `{"shape":[2,2,3],"dim_names":["H","W","C"]}`)
	f.Add(int32(12), `{"shape":[2,2,3],"permutation":[0,1,2]}`)
	f.Add(int32(12), `{"shape":[2,2,3],"permutation":[2,0,1]}`)
	f.Add(int32(0), `{"shape":[]}`)
	f.Add(int32(-1), `{"shape":[65536,65536,65536,65536]}`)
	f.Add(int32(1), `{"shape":[-1,-1]}`)
	f.Fuzz(func(t *testing.T, n int32, text string) {
		storage := arrow.DataType(arrow.PrimitiveTypes.Float32)
		if n > 0 {
			storage = arrow.FixedSizeListOf(n, storage)
		}
		got, err := new(Type).Deserialize(storage, text)
		if err != nil {
			if !errors.As(err, new(*Error)) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		product := 1
		for _, d := range got.(*Type).Shape() {
			product *= d
		}
		if product != int(n) {
			t.Fatalf("%s for a list of %d", got, n)
		}
		again, err := new(Type).Deserialize(storage, got.Serialize())
		if err != nil || !again.ExtensionEquals(got) {
			t.Fatalf("%s is read back as %v, %v", got, again, err)
		}
	})
}
