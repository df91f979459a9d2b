package checkpoint

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// Schedule is a schedule with the files of its folder.
type Schedule struct {
	*schedule.Schedule
	Basis *basis.Basis // dense basis of the schedule; nil for a basis by formula
	Start *start.Start // law of the data that sampling starts from; nil for white noise
}

// SaveSchedule writes a schedule as the folder dir and replaces an existing one. The folder appears whole or not at
// all.
func SaveSchedule(dir string, s Schedule) error {
	files := map[string][]byte{}
	if err := addSchedule(files, s.Schedule, s.Basis); err != nil {
		return err
	}
	if err := StartFile.add(files, s.Start); err != nil {
		return err
	}
	return writeFolder(dir, files, true)
}

// LoadSchedule is the inverse of SaveSchedule. A file that is missing or cannot be used is an *[Error].
func LoadSchedule(dir string) (Schedule, error) {
	return readFolder(dir, func(folder *atomicdir.Stored) (s Schedule, err error) {
		err = readParts(folder, []part{
			schedulePart(&s.Schedule, false),
			basisPart(BasisFile, &s.Basis, true),
			StartFile.part(&s.Start),
		})
		return s, err
	})
}

func schedulePart(s **schedule.Schedule, optional bool) part {
	return part{scheduleFile, optional, func(b []byte) (err error) {
		*s, err = schedule.Decode(bytes.NewReader(b))
		return err
	}}
}

// addSchedule adds the files of a schedule and of its basis, if they are not nil.
func addSchedule(files map[string][]byte, s *schedule.Schedule, b *basis.Basis) error {
	if s != nil {
		text, err := json.Marshal(s)
		if err != nil {
			return inFile(scheduleFile, err)
		}
		files[scheduleFile] = append(text, '\n')
	}
	if b != nil && b.Kind() == basis.KindDense {
		out, err := EncodeBasis(b)
		if err != nil {
			return inFile(BasisFile, err)
		}
		files[BasisFile] = out
	}
	return nil
}

// vectorsPrefix begins the names of the tensors of a basis file: a float64 tensor [k, H, W] for each label, −1 for a
// shared basis, or for the labels of a cluster, separated by commas.
const vectorsPrefix = "vectors."

// EncodeBasis returns the safetensors file of a basis that has vectors.
func EncodeBasis(b *basis.Basis) ([]byte, error) {
	groups := b.Groups()
	if groups == nil {
		groups = [][]int{{basis.Shared}}
	}
	f := &safetensors.File{}
	for _, labels := range groups {
		v, err := b.Vectors(labels[0])
		if err != nil {
			return nil, err
		}
		shape := []int{len(v) / (b.H() * b.W()), b.H(), b.W()}
		f.Tensors = append(f.Tensors, safetensors.FromFloat64s(vectorsPrefix+joinLabels(labels), shape, v))
	}
	return encode(f)
}

func joinLabels(labels []int) string {
	text := make([]string, len(labels))
	for i, label := range labels {
		text[i] = strconv.Itoa(label)
	}
	return strings.Join(text, ",")
}

func splitLabels(text string) (labels []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		label, err := strconv.Atoi(part)
		if err != nil {
			return nil, err
		}
		labels = append(labels, label)
	}
	return labels, nil
}

// DecodeBasis is the inverse of EncodeBasis; the vectors must be orthonormal. Errors are *[Error].
func DecodeBasis(b []byte) (*basis.Basis, error) {
	f, err := safetensors.Decode(b)
	if err != nil {
		return nil, inFile(BasisFile, err)
	}
	fail := func(tensor, msg string) error { return &Error{File: BasisFile, Tensor: tensor, Msg: msg} }
	var clusters [][]int
	var vectors [][][]float64
	var size []int // [H, W]
	for i := range f.Tensors {
		t := &f.Tensors[i]
		text, ok := strings.CutPrefix(t.Name, vectorsPrefix)
		labels, err := splitLabels(text)
		if !ok || err != nil || len(t.Shape) != 3 || slices.Min(t.Shape) < 1 {
			return nil, fail(t.Name, "is not the vectors [k, H, W] of labels")
		}
		if size == nil {
			size = t.Shape[1:]
		}
		if !slices.Equal(size, t.Shape[1:]) {
			return nil, fail(t.Name, "must have the image size of the other vectors")
		}
		values, err := t.Float64s()
		if err != nil {
			return nil, inFile(BasisFile, err)
		}
		clusters = append(clusters, labels)
		vectors = append(vectors, slices.Collect(slices.Chunk(values, size[0]*size[1])))
	}
	if size == nil {
		return nil, fail("", "must have vectors")
	}
	out, err := basis.Clusters(size[0], size[1], clusters, vectors)
	return out, inFile(BasisFile, err)
}

// SaveBasis writes a basis that has vectors as the folder dir, which appears whole or not at all.
func SaveBasis(dir string, b *basis.Basis, replace bool) error {
	file, err := EncodeBasis(b)
	if err != nil {
		return err
	}
	return writeFolder(dir, map[string][]byte{BasisFile: file}, replace)
}

// LoadBasis is the inverse of SaveBasis. A file that is missing or cannot be used is an *[Error].
func LoadBasis(dir string) (*basis.Basis, error) {
	return readFolder(dir, func(folder *atomicdir.Stored) (b *basis.Basis, err error) {
		err = basisPart(BasisFile, &b, false).read(folder)
		return b, err
	})
}

func basisPart(name string, basis **basis.Basis, optional bool) part {
	return part{name, optional, func(b []byte) (err error) { *basis, err = DecodeBasis(b); return err }}
}

func encode(f *safetensors.File) ([]byte, error) {
	var out bytes.Buffer
	err := safetensors.Write(&out, f)
	return out.Bytes(), err
}
