// Package foldertest makes data folders for tests.
package foldertest

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// Tiny is a network of 8×8 images in one channel and three classes.
const Tiny = `{"model_type":"SongUNet","img_resolution":8,"img_channels":1,"label_dim":3,"model_channels":8,
	"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0,"classes":["a","b","c"]}`

// New returns a new data folder with the model "tiny".
func New(tb testing.TB) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	Model(tb, filepath.Join(dir, "models", "tiny"), Tiny, 1)
	return dir
}

// Model writes a model folder with a random network.
func Model(tb testing.TB, folder, config string, seed uint64) {
	tb.Helper()
	net, values := Network(tb, config, seed)
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := checkpoint.SaveModel(folder, &checkpoint.Model{Net: net, Values: values}, false); err != nil {
		tb.Fatal(err)
	}
}

// Network returns a random network.
func Network(tb testing.TB, config string, seed uint64) (*unet.Net, [][]float32) {
	tb.Helper()
	net, err := unet.Parse([]byte(config))
	if err != nil {
		tb.Fatal(err)
	}
	values := net.Init(seed)
	for _, v := range values { // EDM starts with a zero output; a test wants one that depends on everything
		for i := range v {
			v[i] += 0.03 * float32((i*7+3)%11-5)
		}
	}
	return net, values
}

// Dataset stores n random images of 8×8 in one channel as the data set of a folder. Their labels are 0, 1, 2, 0, … if
// they have any.
func Dataset(tb testing.TB, folder string, n int, labelled bool) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		tb.Fatal(err)
	}
	w, err := data.Create(folder, data.Form{Height: 8, Width: 8, Channels: 1, Float: true, Labels: labelled}, n)
	if err != nil {
		tb.Fatal(err)
	}
	x := make([]float32, n*64)
	latent.Normal(77, 0, x)
	for i := range x {
		x[i] = float32(math.Tanh(float64(x[i])))
	}
	var labels []int32
	for i := range n {
		if labelled {
			labels = append(labels, int32(i%3))
		}
	}
	if err := w.Float32(x, labels); err != nil {
		tb.Fatal(err)
	}
	if err := w.Commit(false); err != nil {
		tb.Fatal(err)
	}
}
