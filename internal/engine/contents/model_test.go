package contents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/alloctest"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
)

var parted = api.Schema{Columns: []api.Column{
	{Name: "bytes", Type: api.Uint8, Kind: api.Tensor, Shape: []int{api.PartBytes}},
}}

// filesOf returns config.json and model.safetensors as the operation Model reads them back.
func filesOf(t *testing.T, c *Contents, model string) (config, weights []byte) {
	t.Helper()
	job, err := c.SendModel(t.Context(), api.Model{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	var said struct {
		ConfigBytes  int `json:"config_bytes"`
		WeightsBytes int `json:"weights_bytes"`
	}
	err = job.Run(t.Context(), func(ev api.Event) error {
		b = append(b, ev.Batch.Cols[0].([]uint8)...)
		return json.Unmarshal([]byte(job.Schema.Metadata["request"]), &said)
	})
	if err != nil || int64(len(b)) != job.Rows*api.PartBytes {
		t.Fatalf("%d bytes in %d rows, %v", len(b), job.Rows, err)
	}
	return b[:said.ConfigBytes], b[said.ConfigBytes : said.ConfigBytes+said.WeightsBytes]
}

// putModel uploads two files.
func putModel(t *testing.T, c *Contents, name, rest string, config, weights []byte) error {
	t.Helper()
	b := append(bytes.Clone(config), weights...)
	rows := (len(b) + api.PartBytes - 1) / api.PartBytes
	b = append(b, make([]byte, rows*api.PartBytes-len(b))...)
	body := fmt.Sprintf(`{"name":%q,"config_bytes":%d,"weights_bytes":%d%s}`, name, len(config), len(weights), rest)
	_, err := apitest.Put(t.Context(), c.PutModel, "PutModel", body, parted, api.Batch{Rows: rows, Cols: []any{b}})
	return err
}

// What is read back can be put under another name and is the same model.
func TestModelGoesUpAndComesBack(t *testing.T) {
	c := open(t, foldertest.New(t))
	config, weights := filesOf(t, c, "tiny")
	if err := putModel(t, c, "copy", "", config, weights); err != nil {
		t.Fatal(err)
	}
	models := c.Catalog.Models()
	if len(models) != 2 || models[0].Hash != models[1].Hash || models[0].Shape.Height != models[1].Shape.Height {
		t.Errorf("the copy and the model are %v", models)
	}
	wantCode(t, "a second upload", putModel(t, c, "copy", "", config, weights), api.NameTaken)
	if err := putModel(t, c, "copy", `,"replace":true`, config, weights); err != nil {
		t.Errorf("a replacement: %v", err)
	}
}

// Each has a code, and a sentence on what is wrong. What a graph declares and its file lacks takes no memory, however
// large.
func TestBadModelsAreNotStored(t *testing.T) {
	c := open(t, foldertest.New(t))
	config, weights := filesOf(t, c, "tiny")
	graph := func(params int) []byte {
		var nodes strings.Builder
		for i := range params {
			fmt.Fprintf(&nodes, `,{"name":"w%d","op":"param","target":"w%d","shape":[16384,16384],"dtype":"float32"}`, i, i)
		}
		return fmt.Appendf(nil, `{"model_type":"Graph","img_resolution":8,"img_channels":1,"label_dim":0,
			"graph":{"nodes":[{"name":"x","op":"input","target":"sample","shape":[{"batch":1},1,8,8],"dtype":"float32"}%s],
			"output":"x"}}`, &nodes)
	}
	for _, q := range []struct {
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
		{"1 GiB declared", graph(1), weights, "is missing"},
		{"15 GiB declared", graph(15), weights, "is missing"},
		{"64 GiB declared", graph(64), weights, "has more than 4294967296 parameters"},
	} {
		var err error
		took := alloctest.Bytes(func() { err = putModel(t, c, "bad", "", q.config, q.weights) })
		wantCode(t, q.what, err, api.BadModel, q.want)
		if took > 64<<20 {
			t.Errorf("%s: %d bytes were allocated", q.what, took)
		}
	}
	_, err := apitest.Put(t.Context(), c.PutModel, "PutModel", `{"name":"bad","config_bytes":70000,"weights_bytes":9}`,
		parted, api.Batch{Rows: 1, Cols: []any{make([]byte, api.PartBytes)}})
	wantCode(t, "too few rows", err, api.BadTensor)
	if n := len(c.Catalog.Models()); n != 1 {
		t.Errorf("%d models are served after the refusals", n)
	}
}
