package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

func tinyModel(tb testing.TB) *Model {
	tb.Helper()
	net, err := unet.Parse([]byte(`{"model_type":"SongUNet","img_resolution":4,"img_channels":1,` +
		`"model_channels":8,"channel_mult":[1,1],"num_blocks":1,"attn_resolutions":[]}`))
	if err != nil {
		tb.Fatal(err)
	}
	b, err := basis.Dense(4, 4, map[int][][]float64{basis.Shared: {unitVector(0), unitVector(5)}})
	if err != nil {
		tb.Fatal(err)
	}
	th := schedule.EDMTheta(8, 100, 1e-9)
	s, err := schedule.FromTheta(schedule.Family{Basis: "corner"}, nil, [][]schedule.Theta{{th, th}}, 100, 1e-9)
	if err != nil {
		tb.Fatal(err)
	}
	return &Model{Net: net, Values: net.Init(4), Schedule: s, Basis: b}
}

func unitVector(i int) []float64 {
	v := make([]float64, 16)
	v[i] = 1
	return v
}

// read returns the files of a folder by name.
func read(tb testing.TB, dir string) map[string][]byte {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if e.Name() == atomicdir.ManifestFile {
			continue
		}
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			tb.Fatal(err)
		}
	}
	return files
}

// changed is a change of the weights of a model folder's files.
func changed(tb testing.TB, change func(*safetensors.File)) func(files map[string][]byte) {
	return func(files map[string][]byte) {
		tb.Helper()
		f, err := safetensors.Decode(files[weightsFile])
		if err != nil {
			tb.Fatal(err)
		}
		change(f)
		if files[weightsFile], err = encode(f); err != nil {
			tb.Fatal(err)
		}
	}
}

// broken stores a tiny model, and then changes its files.
func broken(tb testing.TB, change func(files map[string][]byte)) (dir string) {
	tb.Helper()
	dir = filepath.Join(tb.TempDir(), "m")
	if err := SaveModel(dir, tinyModel(tb), false); err != nil {
		tb.Fatal(err)
	}
	files := read(tb, dir)
	change(files)
	if err := writeFolder(dir, files, true); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// TestModelRoundTrip: saved, loaded and saved again, a model has the same values, hash and bytes.
func TestModelRoundTrip(t *testing.T) {
	dir := t.TempDir()
	m := tinyModel(t)
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	if err := SaveModel(first, m, false); err != nil {
		t.Fatal(err)
	}
	got, err := LoadModel(first)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(got.Values, m.Values, slices.Equal) || got.Hash != m.Hash || len(m.Hash) != 64 {
		t.Errorf("values or hash differ: %q, %q", got.Hash, m.Hash)
	}
	if !reflect.DeepEqual(got.Schedule.Theta(), m.Schedule.Theta()) ||
		!reflect.DeepEqual(got.Schedule.Family(), m.Schedule.Family()) {
		t.Error("the schedule differs")
	}
	x, _ := got.Basis.Vectors(basis.Shared)
	y, _ := m.Basis.Vectors(basis.Shared)
	if !slices.Equal(x, y) {
		t.Error("the basis differs")
	}
	if err := SaveModel(second, got, false); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read(t, first), read(t, second)) {
		t.Error("the same model has other bytes")
	}
	if err := SaveModel(first, m, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a taken name: %v", err)
	}
	m.Schedule, m.Basis = nil, nil
	if err := SaveModel(first, m, true); err != nil {
		t.Fatal(err)
	}
	if files := read(t, first); len(files) != 2 || files[configFile] == nil || files[weightsFile] == nil {
		t.Errorf("replaced by a model without a schedule, the folder holds %d files", len(files))
	}
}

// TestBrokenModels: errors say which file, and which tensor of it.
func TestBrokenModels(t *testing.T) {
	weights := func(change func(*safetensors.File)) func(map[string][]byte) { return changed(t, change) }
	const conv = "model.enc.4x4_conv.weight"
	for name, c := range map[string]struct {
		change       func(map[string][]byte)
		file, tensor string
	}{
		"no config": {func(f map[string][]byte) { delete(f, configFile) }, configFile, ""},
		"unknown key": {func(f map[string][]byte) {
			f[configFile] = []byte(`{"img_resolution":4,"img_channels":1,` +
				`"colour":3}`)
		}, configFile, ""},
		"no weights": {func(f map[string][]byte) { delete(f, weightsFile) }, weightsFile, ""},
		"cut short": {
			func(f map[string][]byte) { f[weightsFile] = f[weightsFile][:len(f[weightsFile])/2] }, weightsFile,
			"*",
		},
		"no safetensors": {func(f map[string][]byte) { f[weightsFile] = []byte("hello") }, weightsFile, ""},
		"missing tensor": {weights(func(f *safetensors.File) {
			f.Tensors = slices.DeleteFunc(f.Tensors, func(t safetensors.Tensor) bool { return t.Name == conv })
		}), weightsFile, conv},
		"renamed tensor": {weights(func(f *safetensors.File) { f.Lookup(conv).Name = "model.extra" }), weightsFile, conv},
		"unknown tensor": {weights(func(f *safetensors.File) {
			f.Tensors = append(f.Tensors, safetensors.FromFloat32s("model.extra", []int{1}, []float32{1}))
		}), weightsFile, "model.extra"},
		"other shape": {weights(func(f *safetensors.File) { f.Lookup(conv).Shape = []int{1, 8, 3, 3} }), weightsFile, conv},
		"other type": {weights(func(f *safetensors.File) {
			*f.Lookup(conv) = safetensors.FromInt64s(conv, []int{8, 1, 3, 3}, make([]int64, 72))
		}), weightsFile, conv},
		"schedule":        {func(f map[string][]byte) { f[scheduleFile] = []byte(`{}`) }, scheduleFile, ""},
		"basis":           {func(f map[string][]byte) { f[BasisFile] = []byte(`{}`) }, BasisFile, ""},
		"basis of others": {func(f map[string][]byte) { f[BasisFile] = f[weightsFile] }, BasisFile, "*"},
	} {
		path := broken(t, c.change)
		_, err := LoadModel(path)
		var e *Error
		if !errors.As(err, &e) || e.File != c.file || c.tensor != "*" && e.Tensor != c.tensor {
			t.Errorf("%s: error %v", name, err)
		}
		if _, faults := CheckModel(path); len(faults) == 0 || name != "renamed tensor" && faults[0].Error() != err.Error() {
			t.Errorf("%s: CheckModel says %v, LoadModel %v", name, faults, err)
		}
	}
}

// TestCheckModel: a sound folder has no faults, and in one with several each is told.
func TestCheckModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	m := tinyModel(t)
	if err := SaveModel(dir, m, false); err != nil {
		t.Fatal(err)
	}
	net, faults := CheckModel(dir)
	if len(faults) != 0 || net == nil || net.ParamCount() != m.Net.ParamCount() {
		t.Errorf("a sound model: network %v, faults %v", net, faults)
	}
	_, faults = CheckModel(broken(t, func(files map[string][]byte) {
		changed(t, func(f *safetensors.File) {
			f.Lookup("model.map_layer0.bias").Name = "model.extra"
			*f.Lookup("model.map_layer1.bias") = safetensors.FromInt64s("model.map_layer1.bias", []int{32}, make([]int64, 32))
		})(files)
		files[BasisFile] = []byte("hello")
	}))
	var got []string
	for _, err := range faults {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%v is no *Error", err)
		}
		got = append(got, e.File+" "+e.Tensor)
	}
	want := []string{
		"model.safetensors model.map_layer1.bias", "model.safetensors model.map_layer0.bias",
		"model.safetensors model.extra", "basis.safetensors ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("faults %q, want %q", got, want)
	}
}

// TestStateDictOfPyTorch loads the state dict that EDM's network had in PyTorch; saved again, every tensor is the same
// to the last bit.
func TestStateDictOfPyTorch(t *testing.T) {
	c := fixtures.Load(t, "networks/ddpmpp")
	given := c.File("weights.safetensors")
	var b bytes.Buffer
	if err := safetensors.Write(&b, given); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	if err := writeFolder(first, map[string][]byte{configFile: c.Raw("config"), weightsFile: b.Bytes()},
		false); err != nil {
		t.Fatal(err)
	}
	m, err := LoadModel(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := SaveModel(second, m, false); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(second, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	saved, err := safetensors.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range given.Tensors {
		got := saved.Lookup(want.Name)
		if got == nil || !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s differs", want.Name)
		}
	}
}

func TestRunRoundTrip(t *testing.T) {
	dir := t.TempDir()
	m := tinyModel(t)
	moments := func(x float64) [][][]float64 {
		return [][][]float64{{{x, 1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12, 1.0 / 3}}}
	}
	r := &Run{
		RunHead: RunHead{
			Config: json.RawMessage(`{"stage":"isotropic","seed":18446744073709551615}`),
			Step:   5, Seen: 320, Position: 300, Skipped: 1, Images: 1297, Updates: 4, ThetaUpdates: []int64{4},
		},
		Network: m.Net,
		Params:  m.Values, M: m.Net.(*unet.Net).Init(1), V: m.Net.(*unet.Net).Init(2), EMA: m.Net.(*unet.Net).Init(3),
		Schedule: m.Schedule, Basis: m.Basis, ThetaM: moments(0.1), ThetaV: moments(0.2),
		Rows: [][]float64{{1, 0.5}, {2, 0.25}},
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := SaveRun(a, a+".previous", r); err != nil {
		t.Fatal(err)
	}
	got, err := LoadRun(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := SaveRun(b, b+".previous", got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read(t, a), read(t, b)) {
		t.Error("the same state has other bytes")
	}
	var before, after any
	if json.Unmarshal(r.Config, &before) != nil || json.Unmarshal(got.Config, &after) != nil ||
		!reflect.DeepEqual(before, after) {
		t.Errorf("configuration %s", got.Config)
	}
	got.Config, got.Schedule, got.Basis, got.Network = r.Config, r.Schedule, r.Basis, r.Network
	if !reflect.DeepEqual(got, r) {
		t.Errorf("loaded %+v, want %+v", got, r)
	}

	// A basis of the family beside that of the schedule, whose vectors clusters share.
	if r.Family, err = basis.Clusters(2, 2, [][]int{{0, 2}, {1}},
		[][][]float64{{{1, 0, 0, 0}}, {{0, 0, 0, 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := SaveRun(a, a+".previous", r); err != nil {
		t.Fatal(err)
	}
	if got, err = LoadRun(a); err != nil || !reflect.DeepEqual(got.Family, r.Family) {
		t.Errorf("family's basis %+v, error %v", got.Family, err)
	}

	frozen := &Run{RunHead: RunHead{Config: json.RawMessage(`{}`)}, Network: m.Net, Params: m.Values}
	if err := SaveRun(a, a+".previous", frozen); err != nil {
		t.Fatal(err)
	}
	if got, err = LoadRun(a); err != nil || got.M != nil || got.EMA != nil || got.ThetaM != nil || got.Schedule != nil ||
		got.Rows != nil {
		t.Errorf("a frozen network: %+v, error %v", got, err)
	}
	frozen.Params = frozen.Params[1:]
	var e *Error
	if err := SaveRun(a, a+".previous", frozen); !errors.As(err, &e) {
		t.Errorf("a parameter is missing: %v", err)
	}
}
