package catalog

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

func (c *Catalog) load(t *testing.T, name, model string) error {
	t.Helper()
	_, err := c.LoadModel(t.Context(), api.LoadModel{Name: name, Model: model})
	return err
}

func model(t *testing.T, c *Catalog, name string) *Model {
	t.Helper()
	m, err := c.Model(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLoadModel(t *testing.T) {
	c := open(t, foldertest.New(t))
	foldertest.Model(t, c.modelFolder("late"), foldertest.Tiny, 2) // a folder that appears after the start
	_, err := c.Model("late")
	wantCode(t, "not loaded yet", err, api.ModelNotFound)
	for range 2 { // the second time changes nothing
		if err := c.load(t, "late", ""); err != nil {
			t.Fatal(err)
		}
	}
	if v := model(t, c, "late").Version; v != 1 {
		t.Errorf("version %d after loading the same folder twice", v)
	}
	wantCode(t, "no folder", c.load(t, "none-here", ""), api.ModelNotFound)
	wantCode(t, "no model", c.load(t, "x", "none-here"), api.ModelNotFound)
}

// A model takes the name of another, which goes, and its folder that of the other's.
func TestModelsAreRenamed(t *testing.T) {
	c := open(t, foldertest.New(t))
	foldertest.Model(t, c.modelFolder("trial"), foldertest.Tiny, 2)
	if err := c.load(t, "trial", ""); err != nil {
		t.Fatal(err)
	}
	wanted := model(t, c, "trial").Hash
	for _, name := range []string{"tiny", "fresh"} { // one that is there, and one that is not
		if err := c.load(t, name, "trial"); err != nil || model(t, c, name).Hash != wanted {
			t.Errorf("the model %s is %s, %v", name, model(t, c, name).Hash, err)
		}
		if _, err := os.Stat(c.modelFolder("trial")); !os.IsNotExist(err) {
			t.Errorf("the folder of before: %v", err)
		}
		_, err := c.Model("trial")
		wantCode(t, "the name of before", err, api.ModelNotFound)
		if err := c.load(t, "trial", name); err != nil {
			t.Fatal(err)
		}
	}
}

// Neither a linked folder nor a linked file may lead out of the models folder.
func TestLoadModelFollowsNoLinkOut(t *testing.T) {
	c := open(t, foldertest.New(t))
	outside := filepath.Join(t.TempDir(), "m")
	foldertest.Model(t, outside, foldertest.Tiny, 3)
	foldertest.Model(t, c.modelFolder("half"), foldertest.Tiny, 3)
	weights := filepath.Join(c.modelFolder("half"), "model.safetensors")
	if err := errors.Join(os.Symlink(outside, c.modelFolder("linked")), os.Remove(weights),
		os.Symlink(filepath.Join(outside, "model.safetensors"), weights),
		os.Symlink("tiny", c.modelFolder("alias"))); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a linked folder", c.load(t, "linked", ""), api.BadModel)
	wantCode(t, "a linked file", c.load(t, "half", ""), api.BadModel)
	if err := c.load(t, "alias", ""); err != nil { // a link that stays inside
		t.Error(err)
	}
}

func TestBadModelsAreRefusedAndLeaveTheRest(t *testing.T) {
	dir := foldertest.New(t)
	spoils := map[string]func(folder string) error{
		"no-weights": func(f string) error { return os.Remove(filepath.Join(f, "model.safetensors")) },
		"truncated":  func(f string) error { return os.Truncate(filepath.Join(f, "model.safetensors"), 1000) },
		"bad-schedule": func(f string) error {
			return os.WriteFile(filepath.Join(f, "schedule.json"), []byte(`{"version":99}`), 0o644)
		},
	}
	for name, spoil := range spoils {
		folder := filepath.Join(dir, "models", name)
		foldertest.Model(t, folder, foldertest.Tiny, 1)
		// without a manifest, which would name the file: a folder made by hand
		if err := errors.Join(spoil(folder), os.Remove(filepath.Join(folder, "manifest.json"))); err != nil {
			t.Fatal(err)
		}
	}
	c := open(t, dir)
	if n := len(c.ModelInfos()); n != 4 {
		t.Errorf("%d models are listed", n)
	}
	for _, m := range c.ModelInfos() {
		if (m.Integrity.State == api.IsDamaged) == (m.Name == "tiny") {
			t.Errorf("listed: %+v", m)
		}
	}
	for name := range spoils {
		wantCode(t, name, c.load(t, name, ""), api.BadModel)
	}
}

// Whoever found a model before it was unloaded learns of it, and a deleted one leaves nothing.
func TestUnloadAndDeleteModel(t *testing.T) {
	c := open(t, foldertest.New(t))
	m, tiny := model(t, c, "tiny"), api.ModelName{Model: "tiny"}
	if err := c.UnloadModel(t.Context(), tiny); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a request prepared before", m.Hold(), api.ModelNotFound)
	wantCode(t, "twice", c.UnloadModel(t.Context(), tiny), api.ModelNotFound)
	if err := errors.Join(c.load(t, "tiny", ""), c.DeleteModel(t.Context(), tiny)); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(c.folders.Models); err != nil || len(left) != 0 {
		t.Errorf("left in the models folder: %v, %v", left, err)
	}
}

// openOn opens a data folder with a device.
func openOn(t *testing.T, dir string, dev *device.Device) *Catalog {
	t.Helper()
	c, err := Open(t.Context(), Config{
		Dir: dir, Logger: slog.New(slog.DiscardHandler), Device: func() (*device.Device, error) { return dev, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Weights beyond the device's memory leave the device, the least recently used first; whoever holds a model keeps it,
// and what has left comes back with the same answers.
func TestModelsLeaveWhenMemoryIsShort(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"a", "b", "c"} {
		foldertest.Model(t, filepath.Join(dir, "models", name), foldertest.Tiny, uint64(i+1))
	}
	c := openOn(t, dir, devicetest.Limited(t, 7*2*int64(model(t, open(t, dir), "a").Net.ParamCount())))
	use := func(name string) []float32 {
		t.Helper()
		m := model(t, c, name)
		network, err := m.IsotropicNetwork()
		if err = errors.Join(err, m.Hold()); err != nil {
			t.Fatal(err)
		}
		defer m.Release()
		_, denoised, _, err := network.Denoise(t.Context(), m.Weights(), make([]float32, 64), []float64{1}, []int32{0})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(denoised)
	}
	loaded := func(want ...string) {
		t.Helper()
		var got []string
		for _, m := range c.Models() {
			if m.Weights() != nil {
				got = append(got, m.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v are loaded, want %v", got, want)
		}
	}
	loaded()
	first := use("a")
	use("b")
	loaded("a", "b")
	use("a")
	use("c") // b was used longest ago
	loaded("a", "c")
	a := model(t, c, "a")
	if err := a.Hold(); err != nil {
		t.Fatal(err)
	}
	use("c")
	use("b")
	loaded("a", "b")
	a.Release()
	use("c")
	loaded("b", "c")
	if !slices.Equal(use("a"), first) {
		t.Error("a model answers differently once it has been unloaded and loaded again")
	}
}

// A folder that changes under a model is not taken for it, and its hash is not remembered for other bytes.
func TestChangedFolderIsNoticed(t *testing.T) {
	c := openOn(t, foldertest.New(t), devicetest.Fast(t))
	m, folder := model(t, c, "tiny"), c.modelFolder("tiny")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	foldertest.Model(t, folder, foldertest.Tiny, 2)
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(filepath.Join(folder, "model.safetensors"), later, later); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a use of what was there", m.Hold(), api.BadModel)
	err := errors.Join(c.UnloadModel(t.Context(), api.ModelName{Model: "tiny"}), c.load(t, "tiny", ""))
	if now := model(t, c, "tiny"); err != nil || now.Hash == m.Hash {
		t.Errorf("other weights have the same hash %s, %v", now.Hash, err)
	} else if err := now.Hold(); err != nil {
		t.Error(err)
	} else {
		now.Release()
	}
}
