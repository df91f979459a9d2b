package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

// bomb is a PNG whose head claims so many pixels.
func bomb(t *testing.T, side uint32) []byte {
	b := slices.Clone(plain(t, 1, 1, grey(0)))
	binary.BigEndian.PutUint32(b[16:], side)
	binary.BigEndian.PutUint32(b[20:], side)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

// TestBadInput: whatever is wrong, the error is a *data.Error that names the file and the
// entry, and says what is wrong.
func TestBadInput(t *testing.T) {
	im := plain(t, 2, 2, grey(9))
	small := plain(t, 2, 3, grey(9))
	oneChannel := encoded(t, image.NewGray(image.Rect(0, 0, 2, 2)))
	cut := func(path string, part float64) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b[:int(part*float64(len(b)))]
	}
	damaged := func(path string, at int) []byte {
		b := cut(path, 1)
		b[at] ^= 0xff
		return b
	}
	list := func(text string) string {
		return zipOf(t, map[string][]byte{"a.png": im, "b.png": im, "dataset.json": []byte(text)})
	}
	npz := func(images, labels *data.Array) string {
		var b bytes.Buffer
		arrays := map[string]*data.Array{"images": images}
		if labels != nil {
			arrays["labels"] = labels
		}
		if err := data.WriteNPZ(&b, arrays); err != nil {
			t.Fatal(err)
		}
		return fileOf(t, "a.npz", b.Bytes())
	}
	eight := &data.Array{Shape: []int{2, 2, 2, 1}, Values: make([]uint8, 8)}
	for name, c := range map[string]struct {
		path  string
		entry string // that the error names
		says  string
	}{
		"empty folder":          {folderOf(t, nil), "", "no PNG, JPEG or WebP"},
		"empty file":            {fileOf(t, "a.zip", nil), "", "empty"},
		"unknown format":        {fileOf(t, "a.h5", []byte("\x89HDF\r\n\x1a\n....")), "", "no format that is read"},
		"another kind of image": {folderOf(t, map[string][]byte{"x/a.gif": im}), "x/a.gif", "make it a PNG"},
		"no image":              {folderOf(t, map[string][]byte{"a.png": []byte("hello")}), "a.png", "is no PNG"},
		"truncated image":       {folderOf(t, map[string][]byte{"a.png": im[:len(im)-20]}), "a.png", "EOF"},
		"bomb":                  {zipOf(t, map[string][]byte{"a.png": bomb(t, 65535)}), "a.png", "claims 65535×65535 pixels"},
		"mixed sizes":           {folderOf(t, map[string][]byte{"a.png": im, "b.png": small}), "b.png", "has 2×3 pixels, those before have 2×2"},
		"mixed channels":        {zipOf(t, map[string][]byte{"a.png": im, "b.png": oneChannel}), "b.png", "has 1 channels, those before have 3"},
		"corrupt zip":           {fileOf(t, "a.zip", cut("testdata/edm.zip", 0.7)), "", "no whole zip"},
		"damaged entry":         {fileOf(t, "a.zip", damaged("testdata/edm.zip", 120)), "00000/img00000000.png", "checksum"},
		"name that climbs":      {zipOf(t, map[string][]byte{"../a.png": im}), "../a.png", "no name of a file"},
		"absolute name":         {zipOf(t, map[string][]byte{"/etc/a.png": im}), "/etc/a.png", "no name of a file"},
		"missing label":         {list(`{"labels": [["a.png", 0]]}`), "b.png", "has no label in dataset.json, which has 1 for 2 images"},
		"label of nothing":      {list(`{"labels": [["a.png", 0], ["b.png", 0], ["../c.png", 1]]}`), "dataset.json", `"../c.png", which is not there`},
		"label twice":           {list(`{"labels": [["a.png", 0], ["a.png", 0]]}`), "dataset.json", "two labels"},
		"negative label":        {list(`{"labels": [["a.png", -1], ["b.png", 0]]}`), "dataset.json", "has the label -1"},
		"label in words":        {list(`{"labels": [["a.png", "cat"], ["b.png", 0]]}`), "dataset.json", "whole numbers"},
		"label too large":       {list(`{"labels": [["a.png", 4294967296], ["b.png", 0]]}`), "dataset.json", "whole numbers"},
		"no JSON":               {list(`{"labels": `), "dataset.json", "is not {"},
		"beside classes":        {folderOf(t, map[string][]byte{"a/a.png": im, "b.png": im}), "b.png", "beside folders"},
		"truncated npz":         {fileOf(t, "a.npz", cut("testdata/positional.npz", 0.5)), "", "no whole zip"},
		"damaged npz":           {fileOf(t, "a.npz", damaged("testdata/positional.npz", 200)), "arr_0.npy", "checksum"},
		"npz without images":    {npzWithout(t), "", "no array images"},
		"npz of doubles":        {npz(&data.Array{Shape: []int{1, 1, 1, 1}, Values: []float64{0}}, nil), "images.npy", "uint8, or float32"},
		"npz of vectors":        {npz(&data.Array{Shape: []int{8}, Values: make([]uint8, 8)}, nil), "images.npy", "axes H, W, C"},
		"npz of ten channels":   {npz(&data.Array{Shape: []int{1, 10, 9, 8}, Values: make([]uint8, 720)}, nil), "images.npy", "10 channels"},
		"npz short of labels":   {npz(eight, &data.Array{Shape: []int{1}, Values: []int64{0}}), "labels.npy", "1 labels for 2 images"},
		"npz label too large":   {npz(eight, &data.Array{Shape: []int{2}, Values: []int64{0, 1 << 40}}), "labels.npy", "must lie between"},
		"npz out of range":      {npz(&data.Array{Shape: []int{2, 1, 1, 1}, Values: []float32{0, 3}}, nil), "images.npy row 1", "lie in [−1, 1]"},
		"CIFAR label":           {fileOf(t, "data_batch_1.bin", binaryBatch([]byte{1, 2}, []byte{3, 10})), "data_batch_1.bin", "row 1: label 10"},
		"CIFAR cut short":       {fileOf(t, "data_batch_1.bin", make([]byte, 3000)), "data_batch_1.bin", "no whole number of records"},
		"pickle cut short":      {fileOf(t, "data_batch_1", cut("testdata/batch-protocol2", 0.5)), "data_batch_1", "ends in the middle"},
		"pickle of a call":      {fileOf(t, "data_batch_1", []byte("\x80\x02cos\nsystem\n\x8c\x02ls\x85R.")), "data_batch_1", "is no batch"},
		"tar cut short":         {fileOf(t, "a.tar.gz", append([]byte("\x1f\x8b\x08"), make([]byte, 20)...)), "", "tar"},
		"stored, cut short":     {storedInPart(t), "images.npy", "bytes of values"},
		"truncated Arrow":       {fileOf(t, "a.arrow", cut("testdata/tensors.arrow", 0.5)), "", "damaged"},
		"truncated Parquet":     {fileOf(t, "a.parquet", cut("testdata/tensors.parquet", 0.6)), "", "cannot be opened"},
		"Parquet bytes changed": {fileOf(t, "a.parquet", damaged("testdata/tensors.parquet", 100)), "", "damaged"},
	} {
		err := convertAll(t, c.path)
		var e *data.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v, want a *data.Error", name, err)
			continue
		}
		if e.File == "" || !strings.Contains(err.Error(), c.says) || e.Entry != c.entry {
			t.Errorf("%s: error %q about entry %q; want one about %q that says %q", name, err, e.Entry, c.entry, c.says)
		}
	}
}

func convertAll(t *testing.T, path string) error {
	s, err := Open(path, Auto)
	if err != nil {
		return err
	}
	defer s.Close()
	_, _, err = read(t, s, Settings{})
	return err
}

// storedInPart is a stored data set whose last image is gone.
func storedInPart(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "stored")
	w, err := data.Create(dir, data.Form{Height: 2, Width: 2, Channels: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Uint8(make([]uint8, 8), nil), w.Commit(false)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "images.npy")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, info.Size()-4); err != nil {
		t.Fatal(err)
	}
	return dir
}

func npzWithout(t *testing.T) string {
	var b bytes.Buffer
	if err := data.WriteNPZ(&b, map[string]*data.Array{"x": {Shape: []int{1}, Values: []uint8{1}}}); err != nil {
		t.Fatal(err)
	}
	return fileOf(t, "a.npz", b.Bytes())
}
