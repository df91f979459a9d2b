package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/alloctest"
)

var parted = api.Schema{Columns: []api.Column{
	{Name: "bytes", Type: api.Uint8, Kind: api.Tensor, Shape: []int{api.PartBytes}},
}}

// filesOf returns config.json and model.safetensors as the operation Model reads them back.
func filesOf(t *testing.T, e *Engine, model string) (config, weights []byte) {
	t.Helper()
	job, err := prepare(t.Context(), e, "Model", fmt.Sprintf(`{"model":%q}`, model))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	if err := job.Run(t.Context(), func(ev api.Event) error {
		if ev.Batch != nil {
			all.Write(ev.Batch.Cols[0].([]uint8))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var said struct {
		ConfigBytes  int `json:"config_bytes"`
		WeightsBytes int `json:"weights_bytes"`
	}
	if err := json.Unmarshal([]byte(job.Schema.Metadata["request"]), &said); err != nil {
		t.Fatal(err)
	}
	if int64(all.Len()) != job.Rows*api.PartBytes {
		t.Fatalf("%d bytes in %d rows", all.Len(), job.Rows)
	}
	b := all.Bytes()
	return b[:said.ConfigBytes], b[said.ConfigBytes : said.ConfigBytes+said.WeightsBytes]
}

// putModel uploads two files.
func putModel(e *Engine, name, rest string, config, weights []byte) error {
	b := append(bytes.Clone(config), weights...)
	rows := (len(b) + api.PartBytes - 1) / api.PartBytes
	b = append(b, make([]byte, rows*api.PartBytes-len(b))...)
	command := fmt.Sprintf(`{"op":"PutModel","name":%q,"config_bytes":%d,"weights_bytes":%d%s}`, name, len(config),
		len(weights), rest)
	_, err := put(e, command, parted, api.Batch{Rows: rows, Cols: []any{b}})
	return err
}

// TestModelGoesUpAndComesBack: what is read back can be put under another name and is the same model.
func TestModelGoesUpAndComesBack(t *testing.T) {
	e := open(t)
	config, weights := filesOf(t, e, "tiny")
	if err := putModel(e, "copy", "", config, weights); err != nil {
		t.Fatal(err)
	}
	a := reply[api.ModelInfo](t, e, "DescribeModel", `{"model":"tiny"}`)
	b := reply[api.ModelInfo](t, e, "DescribeModel", `{"model":"copy"}`)
	if a.Hash != b.Hash || a.Resolution != b.Resolution {
		t.Errorf("the copy has hash %s, the model %s", b.Hash, a.Hash)
	}
	wantCode(t, "a second upload", putModel(e, "copy", "", config, weights), api.NameTaken)
	if err := putModel(e, "copy", `,"replace":true`, config, weights); err != nil {
		t.Errorf("a replacement: %v", err)
	}
}

// TestBadModelsAreNotStored: each with a code, and a sentence on what is wrong.
func TestBadModelsAreNotStored(t *testing.T) {
	e := open(t)
	config, weights := filesOf(t, e, "tiny")
	for _, c := range []struct {
		what            string
		config, weights []byte
		want            string
	}{
		{
			"another network", bytes.Replace(config, []byte(`"model_channels":8`), []byte(`"model_channels":16`), 1), weights,
			"has shape",
		},
		{"no JSON", []byte("{"), weights, "must be one JSON object"},
		{"half the weights", config, weights[:len(weights)/2], "safetensors"},
		{
			"a graph of nothing", []byte(`{"model_type":"Graph","img_resolution":8,"img_channels":1,"label_dim":0,"graph":{}}`),
			weights, "output must be one of the 0 nodes",
		},
	} {
		wantCode(t, c.what, putModel(e, "bad", "", c.config, c.weights), api.BadModel, c.want)
	}
	command := `{"op":"PutModel","name":"bad","config_bytes":70000,"weights_bytes":9}`
	_, err := put(e, command, parted, api.Batch{Rows: 1, Cols: []any{make([]byte, api.PartBytes)}})
	wantCode(t, "too few rows", err, api.BadTensor)
	if _, err := e.catalog.Model("bad"); err == nil {
		t.Error("a model that cannot be used is served")
	}
}

// TestGraphsWithoutTheirWeights: what a graph declares and its file lacks is an error, and no memory, however large.
func TestGraphsWithoutTheirWeights(t *testing.T) {
	e := open(t)
	_, weights := filesOf(t, e, "tiny")
	for count, want := range map[int]string{1: "is missing", 15: "is missing", 64: "has more than 4294967296 parameters"} {
		var nodes strings.Builder
		for i := range count {
			fmt.Fprintf(&nodes, `,{"name":"w%d","op":"param","target":"w%d","shape":[16384,16384],"dtype":"float32"}`, i, i)
		}
		config := fmt.Appendf(nil, `{"model_type":"Graph","img_resolution":8,"img_channels":1,"label_dim":0,
			"graph":{"nodes":[{"name":"x","op":"input","target":"sample","shape":[{"batch":1},1,8,8],"dtype":"float32"}%s],
			"output":"x"}}`, &nodes)
		var err error
		took := alloctest.Bytes(func() { err = putModel(e, "bad", "", config, weights) })
		wantCode(t, fmt.Sprintf("%d GiB declared", count), err, api.BadModel, want)
		if took > 64<<20 {
			t.Errorf("%d bytes were allocated for %d GiB of declared weights", took, count)
		}
	}
}
