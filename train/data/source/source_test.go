package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/anisoflight/anisoflight/train/data"
)

// TestPillowsPixels: images are decoded as Pillow decodes them; JPEGs to within rounding.
func TestPillowsPixels(t *testing.T) {
	want, err := data.ReadNPZ("testdata/pixels.npz")
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, "testdata/forms.zip", Auto)
	most := map[string]int{"full.jpg": 3, "halved.jpg": 3, "grey.jpg": 1}
	n := 0
	for item, err := range s.Items() {
		if err != nil {
			t.Fatal(err)
		}
		p, err := item.Decode()
		if err != nil {
			t.Fatalf("%s: %v", item.Name, err)
		}
		n++
		name := item.Name
		pixels := want[name].Values.([]uint8)
		if channels := len(pixels) / (24 * 20); p.Height != 24 || p.Width != 20 || p.Channels != channels || len(p.Uint8) != len(pixels) {
			t.Errorf("%s: %d×%d×%d, want 24×20×%d", name, p.Height, p.Width, p.Channels, channels)
			continue
		}
		worst := 0
		for i, v := range p.Uint8 {
			worst = max(worst, int(v)-int(pixels[i]), int(pixels[i])-int(v))
		}
		if worst > most[name] {
			t.Errorf("%s differs by %d, at most %d may be rounding", name, worst, most[name])
		}
	}
	if n != len(want) || s.N != n {
		t.Errorf("%d images, N is %d, want %d", n, s.N, len(want))
	}
}

// TestFormats: what other programs wrote of the same three pictures reads alike.
func TestFormats(t *testing.T) {
	want, _, err := read(t, mustOpen(t, "testdata/named.npz", Auto), Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want.labels, []int32{2, 0, 1}) || want.form != (data.Form{Height: 4, Width: 5, Channels: 3, Labels: true}) {
		t.Fatalf("labels %v, form %+v", want.labels, want.form)
	}
	stored := filepath.Join(t.TempDir(), "stored")
	store(t, mustOpen(t, "testdata/edm.zip", Auto), stored)
	for _, path := range []string{
		"testdata/positional.npz", "testdata/edm.zip", "testdata/tensors.parquet", "testdata/tensors.arrow",
		"testdata/tensors.arrows", "testdata/encoded.parquet", stored,
	} {
		s := mustOpen(t, path, Auto)
		got, _, err := read(t, s, Settings{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if !s.Labels || s.N != 3 || got.form != want.form || !slices.Equal(got.labels, want.labels) || !reflect.DeepEqual(got.pictures, want.pictures) {
			t.Errorf("%s: labels %v, form %+v", path, got.labels, got.form)
		}
		if none, _, err := read(t, mustOpen(t, path, None), Settings{}); err != nil || none.form.Labels || !slices.Equal(none.labels, []int32{-1, -1, -1}) {
			t.Errorf("%s without labels: %v, %+v, %v", path, err, none.form, none.labels)
		}
	}
}

// python2Batch is a batch as Python 2 wrote CIFAR-10's: rows of one value each.
func python2Batch(values, labels []byte) []byte {
	var b bytes.Buffer
	b.WriteString("\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03U\x06labelsq\x04]q\x05(")
	for _, label := range labels {
		b.Write([]byte{'K', label})
	}
	b.WriteString("eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\x09")
	b.WriteString("(K\x01K")
	b.WriteByte(byte(len(values)))
	b.WriteString("M\x00\x0c\x86cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T")
	n := len(values) * cifarPixels
	b.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	for _, v := range values {
		b.Write(bytes.Repeat([]byte{v}, cifarPixels))
	}
	b.WriteString("tbu.")
	return b.Bytes()
}

func binaryBatch(values, labels []byte) []byte {
	var b bytes.Buffer
	for i, v := range values {
		b.WriteByte(labels[i])
		b.Write(bytes.Repeat([]byte{v}, cifarPixels))
	}
	return b.Bytes()
}

// TestCIFAR: python batches of Python 2 and 3, binary batches, folders and tars of them.
func TestCIFAR(t *testing.T) {
	one, two := python2Batch([]byte{10, 20}, []byte{6, 9}), python2Batch([]byte{30}, []byte{0})
	tarred := func(compress bool) string {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, f := range []struct {
			name    string
			content []byte
		}{{"data_batch_2", two}, {"test_batch", two}, {"readme.html", nil}, {"data_batch_1", one}} {
			if err := w.WriteHeader(&tar.Header{Name: "cifar-10-batches-py/" + f.name, Size: int64(len(f.content)), Mode: 0o644}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(f.content); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if compress {
			var z bytes.Buffer
			g := gzip.NewWriter(&z)
			_, _ = g.Write(b.Bytes())
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			b = z
		}
		return fileOf(t, "cifar", b.Bytes())
	}
	for name, c := range map[string]struct {
		path   string
		values []byte
		labels []int32
	}{
		"folder":        {folderOf(t, map[string][]byte{"data_batch_1": one, "data_batch_2": two, "test_batch": two}), []byte{10, 20, 30}, []int32{6, 9, 0}},
		"tar":           {tarred(false), []byte{10, 20, 30}, []int32{6, 9, 0}},
		"tar.gz":        {tarred(true), []byte{10, 20, 30}, []int32{6, 9, 0}},
		"test batch":    {fileOf(t, "test_batch", two), []byte{30}, []int32{0}},
		"python 3":      {"testdata/batch-protocol2", []byte{0, 1}, []int32{6, 9}},
		"protocol 4":    {"testdata/batch-protocol4", []byte{0, 1}, []int32{6, 9}},
		"binary":        {fileOf(t, "data_batch_1.bin", binaryBatch([]byte{5, 6}, []byte{1, 2})), []byte{5, 6}, []int32{1, 2}},
		"binary folder": {folderOf(t, map[string][]byte{"data_batch_1.bin": binaryBatch([]byte{5}, []byte{1}), "batches.meta.txt": nil}), []byte{5}, []int32{1}},
	} {
		s := mustOpen(t, c.path, Auto)
		got, _, err := read(t, s, Settings{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(got.labels, c.labels) || s.N != len(c.labels) {
			t.Errorf("%s: labels %v, want %v; N is %d", name, got.labels, c.labels, s.N)
		}
		for i, p := range got.pictures {
			if p.Height != 32 || p.Width != 32 || p.Channels != 3 || slices.Min(p.Uint8) != c.values[i] || slices.Max(p.Uint8) != c.values[i] {
				t.Errorf("%s: image %d is %d×%d×%d of %d", name, i, p.Height, p.Width, p.Channels, p.Uint8[0])
			}
		}
	}
}

// TestChannelOrder: CIFAR-10's planes become pixels.
func TestChannelOrder(t *testing.T) {
	b := make([]byte, cifarRecord)
	b[1+1024+33] = 200 // green, row 1, column 1
	got, _, err := read(t, mustOpen(t, fileOf(t, "data_batch_1.bin", b), Auto), Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if at := slices.Index(got.pictures[0].Uint8, 200); at != (32+1)*3+1 {
		t.Errorf("the green of pixel (1, 1) lies at %d", at)
	}
}

// TestLabels: dataset.json, then top-level folders; the folder itself, or none, on demand.
func TestLabels(t *testing.T) {
	im := plain(t, 2, 2, grey(9))
	nested := map[string][]byte{"test/cat/a.png": im, "test/dog/b.png": im, "train/cat/c.png": im, "notes.txt": nil}
	listed := map[string][]byte{"x/a.png": im, "y/b.png": im, "dataset.json": []byte(`{"labels": [["y/b.png", 4], ["x/a.png", 7]]}`)}
	null := map[string][]byte{"x/a.png": im, "y/b.png": im, "dataset.json": []byte(`{"labels": null}`)}
	for name, c := range map[string]struct {
		files   map[string][]byte
		rule    LabelRule
		labels  []int32
		classes []string
	}{
		"top-level folders": {nested, Auto, []int32{0, 0, 1}, []string{"test", "train"}},
		"own folders":       {nested, ByFolder, []int32{0, 1, 0}, []string{"cat", "dog"}},
		"none":              {nested, None, []int32{-1, -1, -1}, nil},
		"dataset.json":      {listed, Auto, []int32{7, 4}, nil},
		"own, though":       {listed, ByFolder, []int32{0, 1}, []string{"x", "y"}},
		"null":              {null, Auto, []int32{-1, -1}, nil},
		"one folder":        {map[string][]byte{"00000/a.png": im, "00000/b.png": im}, Auto, []int32{-1, -1}, nil},
	} {
		for kind, path := range map[string]string{"folder": folderOf(t, c.files), "zip": zipOf(t, c.files)} {
			s := mustOpen(t, path, c.rule)
			got, _, err := read(t, s, Settings{})
			if err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
				continue
			}
			if !slices.Equal(got.labels, c.labels) || !slices.Equal(s.Classes, c.classes) || s.Labels != (c.labels[0] >= 0) {
				t.Errorf("%s, %s: labels %v of %v, want %v of %v", name, kind, got.labels, s.Classes, c.labels, c.classes)
			}
		}
	}
	if _, err := Open("testdata/named.npz", ByFolder); err == nil || !strings.Contains(err.Error(), "labels by folder") {
		t.Errorf("labels by folder of a .npz: %v", err)
	}
	if _, err := Open("testdata/named.npz", "column"); err == nil {
		t.Error("an unknown rule is taken")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent"), Auto); !os.IsNotExist(err) {
		t.Errorf("nothing there: %v", err)
	}
}

// TestLabelColumns: a column of labels may have any type of whole numbers; what is no label
// is refused with its value.
func TestLabelColumns(t *testing.T) {
	column := func(dtype arrow.DataType, text string) arrow.Array {
		b := array.NewBuilder(memory.DefaultAllocator, dtype)
		if err := b.AppendValueFromString(text); err != nil {
			t.Fatal(err)
		}
		return b.NewArray()
	}
	types := arrow.PrimitiveTypes
	for _, dtype := range []arrow.DataType{
		types.Int8, types.Int16, types.Int32, types.Int64, types.Uint8, types.Uint16, types.Uint32, types.Uint64,
	} {
		if label, err := labelAt(column(dtype, "100"), 0); err != nil || label != 100 {
			t.Errorf("%s: label %d, error %v", dtype, label, err)
		}
	}
	for _, c := range []struct {
		dtype arrow.DataType
		text  string
		says  string
	}{
		{types.Int8, "-2", "label -2;"},
		{types.Uint32, "2147483648", "label 2147483648;"},
		{types.Uint64, "18446744073709551615", "label 18446744073709551615;"},
		{types.Float32, "1", "labels of type float32"},
	} {
		if _, err := labelAt(column(c.dtype, c.text), 0); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: error %v, want one that says %q", c.dtype, c.text, err, c.says)
		}
	}
}
