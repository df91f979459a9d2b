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
	for name, c := range map[string]struct {
		config []byte
		want   string
	}{
		"a cycle": {
			y(`"op":"neg.default","args":{"self":"%y"}`),
			`node y (neg.default): self: uses "y", which is no node before it`,
		},
		"a later node": {small(`,{"name":"y","op":"neg.default","args":{"self":"%z"}},`+
			`{"name":"z","op":"neg.default","args":{"self":"%x"}}`, "y"), `uses "z", which is no node before it`},
		"a huge shape": {
			y(`"op":"zeros.default","shape":[268435456,268435456],"dtype":"float32"`),
			"values for one image",
		},
		"a huge axis":  {y(`"op":"zeros.default","shape":[1e300],"dtype":"float32"`), "a size must be an integer from 0"},
		"half an axis": {y(`"op":"zeros.default","shape":[0.5],"dtype":"float32"`), "got 0.5"},
		"many axes": {
			y(`"op":"zeros.default","shape":[1,1,1,1,1,1,1,1,1],"dtype":"float32"`),
			"at most 8 axes, got 9",
		},
		"a wrong shape": {
			y(`"op":"neg.default",` +
				`"args":{"self":"%x"},"shape":[{"batch":1},1,4,5],"dtype":"float32"`),
			"node y (neg.default): computes shape",
		},
		"a wrong type": {
			y(`"op":"neg.default",` +
				`"args":{"self":"%x"},"shape":[{"batch":1},1,4,4],"dtype":"int64"`),
			"computes floating values; the file says int64",
		},
		"an unknown type": {
			y(`"op":"neg.default","args":{"self":"%x"},"shape":[1],"dtype":"complex64"`),
			`got "complex64"`,
		},
		"no such argument": {y(`"op":"neg.default"`), "self must be a tensor"},
		"a product of misfits": {
			small(`,{"name":"w","op":"param","target":"w","shape":[3,3],"dtype":"float32"},`+
				`{"name":"y","op":"linear.default","args":{"input":"%x","weight":"%w"}}`, "y"),
			"node y (linear.default): ",
		},
		"a misfit of channels": {
			small(`,{"name":"w","op":"param","target":"w","shape":[1,2,3,3],"dtype":"float32"},`+
				`{"name":"y","op":"conv2d.default","args":{"input":"%x","weight":"%w","padding":[1,1]}}`, "y"),
			"kernel takes 2 channels of 1",
		},
		"an output of other size": {
			y(`"op":"view.default",` +
				`"args":{"self":"%x"},"shape":[{"batch":1},16],"dtype":"float32"`),
			"the output must be floating of shape [batch 1 4 4]",
		},
		"no output": {small(``, "z"), `output must be one of the 2 nodes, got "z"`},
		"one name twice": {
			small(`,{"name":"x","op":"neg.default","args":{"self":"%x"}}`, "x"),
			`two nodes are named "x"`,
		},
		"one tensor twice": {
			small(`,{"name":"a","op":"param","target":"w","shape":[3],"dtype":"float32"},`+
				`{"name":"b","op":"param","target":"w","shape":[4],"dtype":"float32"}`, "x"),
			`two nodes stand for the tensor "w"`,
		},
		"a parameter of the batch": {
			y(`"op":"param","target":"w","shape":[{"batch":1}],"dtype":"float32"`),
			"do not depend on the batch",
		},
		"deep lists": {y(`"op":"cat.default","args":{"tensors":[[[[[["%x"]]]]]]}`), "deep"},
		"a label":    {y(`"op":"input","target":"label"`), "needs label_dim"},
		"an unknown input": {
			y(`"op":"input","target":"moon"`),
			"target must be sample, noise, label or onehot",
		},
		"an unknown field": {y(`"op":"neg.default","volume":11`), "volume"},
		"ratios nowhere": {bytes.Replace(small(``, "x"), []byte(`"label_dim":0`),
			[]byte(`"label_dim":0,"ratio_embedding":1`), 1), "export it with ratios_at"},
		"no graph": {[]byte(`{"model_type":"Graph",` +
			`"img_resolution":4,"img_channels":1,"label_dim":0}`), "graph: is missing"},
		"images too large": {bytes.Replace(small(``, "x"), []byte(`"img_resolution":4`),
			[]byte(`"img_resolution":65536`), 1), "img_resolution"},
		"a part of a part": {y(`"op":"getitem","args":{"of":"%x","index":0}`), "there is no result 0 of 0"},
		"an axis too far": {
			y(`"op":"select.int","args":{"self":"%x","dim":7,"index":0}`),
			"there is no axis 7 of 4",
		},
		"a division of axes": {
			y(`"op":"group_norm.default","args":{"input":"%x","num_groups":0}`),
			"in 0 groups",
		},
		"a negative stride": {y(`"op":"slice.Tensor","args":{"self":"%x","step":-1}`), "by -1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := graphnet.Parse(c.config)
			var bad *nn.ConfigError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000 {
				t.Errorf("got error %v; want one that says %q", err, c.want)
			}
		})
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
	var nodes strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&nodes, `,{"name":"n%d","op":"o"}`, i)
	}
	long := `,{"name":"y","op":"cat.default","args":{"tensors":[` + strings.Repeat(`"%x",`, 20000) + `"%x"]}}`
	wide := strings.Repeat(`,{"name":"NAME","op":"neg.default","args":{"self":[`+strings.Repeat(`0,`, 30000)+`0]}}`,
		200)
	for i := range 200 {
		wide = strings.Replace(wide, "NAME", fmt.Sprint("w", i), 1)
	}
	for name, c := range map[string]struct{ nodes, want string }{
		"nodes":            {nodes.String(), "nodes must be at most 20000"},
		"one node":         {long, "must have at most 65536 bytes"},
		"arguments of all": {wide, "together hold more than 1048576 values"},
		"text":             {strings.Repeat(" ", 33<<20), "must have at most 33554432 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			config := small(c.nodes, "x")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := graphnet.Parse(config)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.200v; want %q", err, c.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 512<<20 {
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
