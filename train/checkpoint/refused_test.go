package checkpoint

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// TestRefusedFiles: the files of testdata/refused.json are refused, and what they are changes of is read. The Python
// package reads the same list in client_py/tests/test_client_readers.py: both sides refuse the same.
func TestRefusedFiles(t *testing.T) {
	var cases struct {
		Start, Basis refusedFiles
		Path         struct {
			Good map[string]string
			Bad  map[string]map[string]string
		}
	}
	text, err := os.ReadFile("testdata/refused.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	cases.Start.check(t, "start", func(b []byte) error { _, err := StartFile.Decode(b); return err })
	cases.Basis.check(t, "basis", func(b []byte) error { _, err := DecodeBasis(b); return err })
	read := func(change map[string]string) error {
		fields := maps.Clone(cases.Path.Good)
		maps.Copy(fields, change)
		_, err := schedule.NewPath(floatsOf(t, fields["t"]), floatsOf(t, fields["g"]))
		return err
	}
	if err := read(nil); err != nil {
		t.Error(err)
	}
	for name, change := range cases.Path.Bad {
		if read(change) == nil {
			t.Errorf("path, %s: it is read", name)
		}
	}
}

// refusedFiles are changes of a good file; a field or tensor that is null is taken away.
type refusedFiles struct {
	Good fileChange
	Bad  map[string]fileChange
}

type fileChange struct {
	Metadata map[string]*string
	Tensors  map[string]*struct {
		DType  string
		Shape  []int
		Values string
	}
}

func (c refusedFiles) check(t *testing.T, kind string, decode func([]byte) error) {
	good := c.file(t, fileChange{})
	if err := decode(good); err != nil {
		t.Errorf("%s: %v", kind, err)
	}
	for n := range good {
		if decode(good[:n]) == nil {
			t.Errorf("%s: its first %d bytes of %d are read", kind, n, len(good))
		}
	}
	for name, change := range c.Bad {
		if decode(c.file(t, change)) == nil {
			t.Errorf("%s, %s: it is read", kind, name)
		}
	}
}

func (c refusedFiles) file(t *testing.T, change fileChange) []byte {
	t.Helper()
	metadata, tensors := maps.Clone(c.Good.Metadata), maps.Clone(c.Good.Tensors)
	maps.Copy(metadata, change.Metadata)
	maps.Copy(tensors, change.Tensors)
	f := &safetensors.File{Metadata: map[string]string{}}
	for key, value := range metadata {
		if value != nil {
			f.Metadata[key] = *value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		d := tensors[name]
		if d == nil {
			continue
		}
		values := floatsOf(t, d.Values)
		tensor := safetensors.FromFloat64s(name, d.Shape, values)
		switch d.DType {
		case "F32":
			tensor = safetensors.FromFloat32s(name, d.Shape, converted[float32](values))
		case "I64":
			tensor = safetensors.FromInt64s(name, d.Shape, converted[int64](values))
		}
		f.Tensors = append(f.Tensors, tensor)
	}
	b, err := encode(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func converted[T float32 | int64](values []float64) []T {
	out := make([]T, len(values))
	for i, v := range values {
		out[i] = T(v)
	}
	return out
}

func floatsOf(t *testing.T, text string) (values []float64) {
	t.Helper()
	for field := range strings.FieldsSeq(text) {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}
