package graphnet_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/graphnet"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

const head = `{"model_type":"Graph","img_resolution":4,"img_channels":1,"label_dim":0,"graph":`

// small returns the config.json of a network on 4×4 images in which these nodes come after the image x and the noise t.
func small(nodes string, output string) []byte {
	return fmt.Appendf(nil, `%s{"nodes":[
		{"name":"x","op":"input","target":"sample","shape":[{"batch":1},1,4,4],"dtype":"float32"},
		{"name":"t","op":"input","target":"noise",`+
		`"shape":[{"batch":1}],"dtype":"float32"}%s],"output":%q}}`, head, nodes, output)
}

func TestSmallestNetwork(t *testing.T) {
	n, err := graphnet.Parse(small(``, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if s := n.Spec(); s.Height != 4 || s.Channels != 1 || len(n.Params()) != 0 {
		t.Errorf("got %+v", s)
	}
	again, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	m, err := graphnet.Parse(again)
	if err != nil || m.Spec() != n.Spec() {
		t.Errorf("what is written is read as another network: %v", err)
	}
}

// TestRefusals: what cannot be used is an error of the graph that names the node and says what is wrong.
func TestRefusals(t *testing.T) {
	y := func(rest string) []byte { return small(`,{"name":"y",`+rest+`}`, "y") }
	replaced := func(a, b string) []byte { return bytes.Replace(small(``, "x"), []byte(a), []byte(b), 1) }
	neg := func(rest string) []byte { return y(`"op":"neg.default","args":{"self":"%x"},` + rest) }
	zeros := func(shape string) []byte { return y(`"op":"full.default","dtype":"float32","shape":` + shape) }
	param := func(name, target, shape string) string {
		return fmt.Sprintf(`,{"name":%q,"op":"param","target":%q,"shape":%s,"dtype":"float32"}`, name, target, shape)
	}
	for want, config := range map[string][]byte{
		`node y (neg.default): self: uses "y", which is no node before it`: y(`"op":"neg.default","args":{"self":"%y"}`),
		`uses "z", which is no node before it`: small(`,{"name":"y","op":"neg.default","args":{"self":"%z"}},`+
			`{"name":"z","op":"neg.default","args":{"self":"%x"}}`, "y"),
		"values for one image":                 zeros(`[268435456,268435456]`),
		"a size must be an integer from 0":     zeros(`[1e300]`),
		"got 0.5":                              zeros(`[0.5]`),
		"at most 8 axes, got 9":                zeros(`[1,1,1,1,1,1,1,1,1]`),
		"node y (neg.default): computes shape": neg(`"shape":[{"batch":1},1,4,5],"dtype":"float32"`),
		"floating values; the file says int64": neg(`"shape":[{"batch":1},1,4,4],"dtype":"int64"`),
		`got "complex64"`:                      neg(`"shape":[1],"dtype":"complex64"`),
		"self must be a tensor":                y(`"op":"neg.default"`),
		"node y (linear.default): ": small(param("w", "w", `[3,3]`)+
			`,{"name":"y","op":"linear.default","args":{"input":"%x","weight":"%w"}}`, "y"),
		"kernel takes 2 channels of 1": small(param("w", "w", `[1,2,3,3]`)+
			`,{"name":"y","op":"conv2d.default","args":{"input":"%x","weight":"%w","padding":[1,1]}}`, "y"),
		"the output must be floating of shape [batch 1 4 4]": y(`"op":"view.default",` +
			`"args":{"self":"%x"},"shape":[{"batch":1},16],"dtype":"float32"`),
		`output must be one of the 2 nodes, got "z"`:    small(``, "z"),
		`two nodes are named "x"`:                       small(`,{"name":"x","op":"neg.default","args":{"self":"%x"}}`, "x"),
		`two nodes stand for the tensor "w"`:            small(param("a", "w", `[3]`)+param("b", "w", `[4]`), "x"),
		"do not depend on the batch":                    small(param("a", "w", `[{"batch":1}]`), "x"),
		"deep":                                          y(`"op":"cat.default","args":{"tensors":[[[[[["%x"]]]]]]}`),
		"needs label_dim":                               y(`"op":"input","target":"label"`),
		"target must be sample, noise, label or onehot": y(`"op":"input","target":"moon"`),
		"volume":                    y(`"op":"neg.default","volume":11`),
		"export it with ratios_at":  replaced(`"label_dim":0`, `"label_dim":0,"ratio_embedding":1`),
		"graph: is missing":         []byte(`{"model_type":"Graph","img_resolution":4,"img_channels":1,"label_dim":0}`),
		"img_resolution":            replaced(`"img_resolution":4`, `"img_resolution":65536`),
		"there is no result 0 of 0": y(`"op":"getitem","args":{"of":"%x","index":0}`),
		"there is no axis 7 of 4":   y(`"op":"select.int","args":{"self":"%x","dim":7,"index":0}`),
		"in 0 groups":               y(`"op":"group_norm.default","args":{"input":"%x","num_groups":0}`),
		"mode must be constant, reflect, replicate or circular": y(
			`"op":"pad.default","args":{"self":"%x","pad":[1,1],"mode":"moon"}`),
		"borders of 4 and 0 entries are too wide for 4": y(
			`"op":"pad.default","args":{"self":"%x","pad":[4,0],"mode":"reflect"}`),
		"src must have shape [7 1 3 4]": y(`"op":"slice_scatter.default","args":{"self":"%x","src":"%x","dim":2,"start":1}`),
		"has too many taps": y(`"op":"max_pool2d.default","args":{"self":"%x","kernel_size":99,"padding":99},` +
			`"shape":[{"batch":1},1,1,1],"dtype":"float32"`),
		"4 pixels cannot become 2097152": y(`"op":"upsample_bilinear2d.vec","args":{"input":"%x"},` +
			`"shape":[{"batch":1},1,4,2097152],"dtype":"float32"`),
		"by -1": y(`"op":"slice.Tensor","args":{"self":"%x","step":-1}`),
	} {
		_, err := graphnet.Parse(config)
		var bad *nn.ConfigError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || len(err.Error()) > 2000 {
			t.Errorf("got error %v; want one that says %q", err, want)
		}
	}
}

// TestUnknownOperationsAreNamedTogether: all of them, and the modules that they come from.
func TestUnknownOperationsAreNamedTogether(t *testing.T) {
	_, err := graphnet.Parse(small(`,{"name":"a","op":"fft_fft2.default","args":{"self":"%x"},"module":"spectral.0"},
		{"name":"b","op":"grid_sampler.default","args":{"input":"%x"},"module":"warp"},
		{"name":"c","op":"fft_fft2.default","args":{"self":"%x"},"module":"spectral.1"}`, "x"))
	want := "2 operations have no rule: fft_fft2.default (in spectral.0, spectral.1); grid_sampler.default (in warp)"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want %q", err, want)
	}
}

// TestLargeFilesEndEarly: a million nodes, or arguments, are refused without memory for them all.
func TestLargeFilesEndEarly(t *testing.T) {
	numbers := strings.Repeat(`0,`, 30000)
	var nodes, wide strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&nodes, `,{"name":"n%d","op":"o"}`, i)
	}
	for i := range 200 {
		fmt.Fprintf(&wide, `,{"name":"w%d","op":"neg.default","args":{"self":[%s0]}}`, i, numbers)
	}
	for name, c := range map[string]struct{ nodes, want string }{
		"nodes": {nodes.String(), "nodes must be at most 20000"},
		"one node": {
			`,{"name":"y","op":"o","args":{"a":[` + numbers + numbers + `0]}}`, "must have at most 65536 bytes",
		},
		"arguments of all": {wide.String(), "self must be a tensor"},
		"text":             {strings.Repeat(" ", 17<<20), "must have at most 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			config := small(c.nodes, "x")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := graphnet.Parse(config)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000 {
				t.Errorf("got %.200v; want %q", err, c.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
				t.Errorf("%d bytes were allocated for a file of %d", used, len(config))
			}
		})
	}
}

// FuzzParse: whatever a file says, the answer is a network or a *nn.ConfigError.
func FuzzParse(f *testing.F) {
	f.Add(small(`,{"name":"y","op":"mul.Tensor","args":{"self":"%x","other":2}}`, "y"))
	for _, name := range exported {
		f.Add(read(f, name, "config.json"))
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		n, err := graphnet.Parse(config)
		var bad *nn.ConfigError
		switch {
		case err != nil && !errors.As(err, &bad):
			t.Errorf("got error %v of type %T", err, err)
		case err == nil:
			if _, err := json.Marshal(n); err != nil {
				t.Errorf("a network cannot be written: %v", err)
			}
		}
	})
}
