package source

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/anisoflight/anisoflight/train/data"
)

// table is a file of columns that is read batch by batch.
type table interface {
	Schema() *arrow.Schema
	Next() bool
	RecordBatch() arrow.RecordBatch
	Err() error
	Release()
}

// Names of columns, the first that is there counts.
var (
	imageColumns = []string{"image", "images", "img"}
	labelColumns = []string{"label", "labels"}
)

// openArrow opens an Arrow IPC file or stream.
func openArrow(file string) (*Source, error) {
	return openTable(file, "Arrow IPC", func() (table, func() error, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, nil, err
		}
		magic := make([]byte, 6)
		if _, err := f.ReadAt(magic, 0); err == nil && string(magic) == "ARROW1" {
			// The file format is the stream with a head of 8 bytes and a foot that streams do without.
			if _, err := f.Seek(8, io.SeekStart); err != nil {
				return nil, nil, errors.Join(err, f.Close())
			}
		}
		r, err := ipc.NewReader(bufio.NewReaderSize(f, 1<<20), ipc.WithAllocator(allocator))
		if err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		return r, f.Close, nil
	})
}

// openTable makes a source of a table. It is opened twice: to count its rows, and to read it.
func openTable(file, format string, open func() (table, func() error, error)) (*Source, error) {
	s := &Source{Format: format}
	err := scan(file, open, func(b arrow.RecordBatch) error {
		_, labels, err := columnsOf(b.Schema())
		s.N += int(b.NumRows())
		s.Labels = labels >= 0
		return err
	})
	if err != nil {
		return nil, err
	}
	s.items = func(yield func(Item, error) bool) {
		row := 0
		err := scan(file, open, func(b arrow.RecordBatch) error {
			items, err := itemsOf(b, row)
			if err != nil {
				return err
			}
			row += len(items)
			for _, item := range items {
				if !yield(item, nil) {
					return errStop
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(Item{}, err)
		}
	}
	return s, nil
}

var errStop = errors.New("nobody wants more")

// scan gives the batches of a table to f. A damaged file makes the readers panic; that is an
// error like any other.
func scan(file string, open func() (table, func() error, error), f func(arrow.RecordBatch) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = failf(file, "", "is damaged: %v", p)
		}
	}()
	t, closeFile, err := open()
	if err != nil {
		return failf(file, "", "cannot be opened: %v", err)
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	defer t.Release()
	for t.Next() {
		if err := f(t.RecordBatch()); err != nil {
			if known := (*data.Error)(nil); errors.As(err, &known) || errors.Is(err, errStop) {
				return err
			}
			return failf(file, "", "%v", err)
		}
	}
	if err := t.Err(); err != nil && !errors.Is(err, io.EOF) {
		return failf(file, "", "is damaged: %v", err)
	}
	return nil
}

// columnsOf finds the columns of images and of labels; labels is −1 where there are none.
func columnsOf(s *arrow.Schema) (images, labels int, err error) {
	find := func(names []string) int {
		for _, name := range names {
			if at := s.FieldIndices(name); len(at) == 1 {
				return at[0]
			}
		}
		return -1
	}
	if images, labels = find(imageColumns), find(labelColumns); images < 0 {
		return 0, 0, fmt.Errorf("has no column image; its columns are %v", fieldNames(s))
	}
	return images, labels, nil
}

func fieldNames(s *arrow.Schema) (names []string) {
	for _, f := range s.Fields() {
		names = append(names, f.Name)
	}
	return names
}

// itemsOf gives the images of a batch, whose memory they do not share; row is the number of
// its first.
func itemsOf(b arrow.RecordBatch, row int) ([]Item, error) {
	at, labelsAt, err := columnsOf(b.Schema())
	if err != nil {
		return nil, err
	}
	decoders, err := decodersOf(b.Schema().Field(at), b.Column(at))
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", b.ColumnName(at), err)
	}
	items := make([]Item, len(decoders))
	for i := range items {
		items[i] = Item{Name: fmt.Sprintf("row %d", row+i), Label: -1, Decode: decoders[i]}
		if labelsAt >= 0 {
			if items[i].Label, err = labelAt(b.Column(labelsAt), i); err != nil {
				return nil, fmt.Errorf("column %s: row %d: %w", b.ColumnName(labelsAt), row+i, err)
			}
		}
	}
	return items, nil
}

func labelAt(column arrow.Array, i int) (int32, error) {
	if column.IsNull(i) {
		return 0, errors.New("has no label")
	}
	var v int64
	switch c := column.(type) {
	case *array.Int64:
		v = c.Value(i)
	case *array.Int32:
		v = int64(c.Value(i))
	case *array.Int16:
		v = int64(c.Value(i))
	case *array.Int8:
		v = int64(c.Value(i))
	case *array.Uint8:
		v = int64(c.Value(i))
	case *array.Uint16:
		v = int64(c.Value(i))
	case *array.Uint32:
		v = int64(c.Value(i))
	case *array.Uint64:
		v = int64(min(c.Value(i), math.MaxInt64)) // which is too large for a label too
	default:
		return 0, fmt.Errorf("labels of type %s; they are whole numbers", column.DataType())
	}
	if v < -1 || v > math.MaxInt32 {
		return 0, fmt.Errorf("label %v; labels count from 0 to %d, and −1 means none", column.ValueStr(i), math.MaxInt32)
	}
	return int32(v), nil
}

type decoder = func() (Picture, error)

// decodersOf reads a column of images: a tensor, bytes of encoded images, or a struct with
// such bytes (as Hugging Face data sets have).
func decodersOf(f arrow.Field, column arrow.Array) ([]decoder, error) {
	meta := ""
	if i := f.Metadata.FindKey(ipc.ExtensionMetadataKeyName); i >= 0 {
		meta = f.Metadata.Values()[i]
	}
	if e, ok := column.(array.ExtensionArray); ok {
		meta, column = e.ExtensionType().Serialize(), e.Storage()
	}
	if column.NullN() > 0 {
		return nil, errors.New("has images that are null")
	}
	if s, ok := column.(*array.Struct); ok {
		i, ok := s.DataType().(*arrow.StructType).FieldIdx("bytes")
		if !ok {
			return nil, fmt.Errorf("is of type %s; encoded images are its field bytes", s.DataType())
		}
		column = s.Field(i)
	}
	out := make([]decoder, column.Len())
	switch c := column.(type) {
	case *array.Binary:
		for i := range out {
			encoded := slices.Clone(c.Value(i))
			out[i] = func() (Picture, error) { return decode(encoded) }
		}
		return out, nil
	case *array.LargeBinary:
		for i := range out {
			encoded := slices.Clone(c.Value(i))
			out[i] = func() (Picture, error) { return decode(encoded) }
		}
		return out, nil
	case *array.FixedSizeList:
		return out, tensors(c, meta, out)
	}
	return nil, fmt.Errorf("is of type %s; images are fixed shape tensors of uint8 or float32, or encoded bytes", column.DataType())
}

// tensors fills out with the images of a column of arrow.fixed_shape_tensor; meta is what
// that type stores with the column.
func tensors(list *array.FixedSizeList, meta string, out []decoder) error {
	var shape struct {
		Shape       []int    `json:"shape"`
		Names       []string `json:"dim_names"`
		Permutation []int    `json:"permutation"`
	}
	if meta == "" || json.Unmarshal([]byte(meta), &shape) != nil {
		return errors.New("is a list without a shape; images are arrow.fixed_shape_tensor")
	}
	for i, p := range shape.Permutation {
		if p != i {
			return fmt.Errorf("has the permutation %v; store the tensors in their own order", shape.Permutation)
		}
	}
	form, err := formOf(shape.Shape, shape.Names)
	if err != nil {
		return err
	}
	n := form.Height * form.Width * form.Channels
	if width := int(list.DataType().(*arrow.FixedSizeListType).Len()); width != n {
		return fmt.Errorf("has %d values in each row for the shape %v", width, shape.Shape)
	}
	for i := range out {
		from, to := list.ValueOffsets(i)
		p := form.Picture
		switch v := list.ListValues().(type) {
		case *array.Uint8:
			p.Uint8 = channelsLast(slices.Clone(v.Uint8Values()[from:to]), p, form.layout)
		case *array.Float32:
			p.Float32 = channelsLast(slices.Clone(v.Float32Values()[from:to]), p, form.layout)
		default:
			return fmt.Errorf("has tensors of %s; they are of uint8, or of float32 in [−1, 1]", list.ListValues().DataType())
		}
		out[i] = func() (Picture, error) { return p, nil }
	}
	return nil
}
