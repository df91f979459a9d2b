package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

// tableModel stores a network F(x, label) = sample + condition of the label, on images of 2×2, with the rows −1, −2, …
// for the labels and 0 for none. tail is what config.json says beside.
func tableModel(t *testing.T, e *Engine, name, tail string, labels int) {
	t.Helper()
	rows := labels + 1
	config := fmt.Sprintf(`{"model_type":"Graph","img_resolution":2,"img_channels":1,"label_dim":%d%s,"graph":{"nodes":[
		{"name":"c","op":"param","target":"conditions","frozen":true,"shape":[%d,2,2],"dtype":"float32"},
		{"name":"x","op":"input","target":"sample","shape":[{"batch":1},1,2,2],"dtype":"float32"},
		{"name":"l","op":"input","target":"label","args":{"none":%d},"shape":[{"batch":1}],"dtype":"int64"},
		{"name":"v","op":"view.default","args":{"self":"%%c","size":[%d,4]},"shape":[%d,4],"dtype":"float32"},
		{"name":"r","op":"embedding.default","args":{"weight":"%%v","indices":"%%l"},
			"shape":[{"batch":1},4],"dtype":"float32"},
		{"name":"i","op":"view.default","args":{"self":"%%r","size":[{"batch":1},1,2,2]},
			"shape":[{"batch":1},1,2,2],"dtype":"float32"},
		{"name":"y","op":"add.Tensor","args":{"self":"%%x","other":"%%i"},"shape":[{"batch":1},1,2,2],"dtype":"float32"}
		],"output":"y"}}`, labels, tail, rows, labels, rows, rows)
	values := make([]float32, 4*rows)
	for i := range 4 * labels {
		values[i] = -1 - float32(i/4)
	}
	header := fmt.Sprintf(`{"conditions":{"dtype":"F32","shape":[%d,2,2],"data_offsets":[0,%d]}}`, rows, 16*rows)
	header += strings.Repeat(" ", -len(header)&7)
	weights := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	weights, err := binary.Append(weights, binary.LittleEndian, values)
	if err != nil {
		t.Fatal(err)
	}
	if err := putModel(e, name, "", []byte(config), weights); err != nil {
		t.Fatal(err)
	}
}

// rawOf returns F of zeros, at each label.
func rawOf(t *testing.T, e *Engine, model string, labels ...int32) []float32 {
	t.Helper()
	in := api.Schema{Columns: []api.Column{
		tables.ImageColumn("x", api.Float32, data.HWC, 2, 2, 1),
		{Name: "label", Type: api.Int32},
		{Name: "sigma", Type: api.Float64},
	}}
	x, err := openExchange(t.Context(), e, "Denoise", fmt.Sprintf(`{"model":%q}`, model), in)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	n := len(labels)
	got := &rows{schema: x.Out, cols: map[string]any{}}
	batch := api.Batch{Rows: n, Cols: []any{make([]float32, 4*n), labels, slices.Repeat([]float64{1}, n)}}
	if err := x.Do(t.Context(), batch, got.add); err != nil {
		t.Fatal(err)
	}
	var first []float32
	for i := range n {
		first = append(first, column[float32](got, "raw")[4*i])
	}
	return first
}

func conditionRows(labels []int32, shape []int, values ...float32) (api.Schema, api.Batch) {
	s := api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32}, {Name: "condition", Type: api.Float32, Kind: api.Tensor, Shape: shape},
	}}
	size := 1
	for _, n := range shape {
		size *= n
	}
	var all []float32
	for _, v := range values {
		all = append(all, slices.Repeat([]float32{v}, size)...)
	}
	return s, api.Batch{Rows: len(labels), Cols: []any{labels, all}}
}

// TestConditions: label k picks row k of the table that was sent last, −1 that of no class, which stays unless it is
// sent; labels come and go with rows; the model is stored anew, with another hash.
func TestConditions(t *testing.T) {
	e := open(t)
	tableModel(t, e, "prompts", `,"classes":["a","b"]`, 2)
	if got := rawOf(t, e, "prompts", 0, 1, -1); !slices.Equal(got, []float32{-1, -2, 0}) {
		t.Fatalf("before, F is %v", got)
	}
	before := act(t, e, "DescribeModel", `{"model":"prompts"}`)
	if got := fmt.Sprint(before["conditions"]); got != "map[labels:2 none:true shape:[2 2]]" {
		t.Errorf("the table is described as %s", got)
	}
	s, b := conditionRows([]int32{2, 0, 1}, []int{2, 2}, 7, 5, 6)
	if n, err := put(e, `{"op":"PutConditions","model":"prompts","rows":3}`, s, b); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if got := rawOf(t, e, "prompts", 0, 1, 2, -1); !slices.Equal(got, []float32{5, 6, 7, 0}) {
		t.Errorf("F is %v", got)
	}
	after := act(t, e, "DescribeModel", `{"model":"prompts"}`)
	if after["hash"] == before["hash"] || after["label_dim"] != 3.0 || after["classes"] != nil {
		t.Errorf("the model is %v", after)
	}
	s, b = conditionRows([]int32{0, -1}, []int{2, 2}, 8, 9)
	if _, err := put(e, `{"op":"PutConditions","model":"prompts"}`, s, b); err != nil {
		t.Fatal(err)
	}
	if got := rawOf(t, e, "prompts", 0, -1); !slices.Equal(got, []float32{8, 9}) {
		t.Errorf("F is %v", got)
	}
	config, weights := filesOf(t, e, "prompts")
	if err := putModel(e, "copy", "", config, weights); err != nil {
		t.Errorf("the files with the table: %v", err)
	}
}

// TestConditionsThatCannotBe change nothing.
func TestConditionsThatCannotBe(t *testing.T) {
	e := open(t)
	tableModel(t, e, "prompts", "", 2)
	nan := float32(0)
	nan /= nan
	for what, c := range map[string]struct {
		model  string
		labels []int32
		shape  []int
		values []float32
		code   api.Code
	}{
		"no such model":     {"nobody", []int32{0}, []int{2, 2}, []float32{1}, api.ModelNotFound},
		"a UNet":            {"tiny", []int32{0}, []int{2, 2}, []float32{1}, api.BadRequest},
		"another shape":     {"prompts", []int32{0}, []int{4}, []float32{1}, api.BadTensor},
		"a label twice":     {"prompts", []int32{0, 0}, []int{2, 2}, []float32{1, 2}, api.BadTensor},
		"a label too few":   {"prompts", []int32{0, 2}, []int{2, 2}, []float32{1, 2}, api.BadTensor},
		"a label below":     {"prompts", []int32{0, -2}, []int{2, 2}, []float32{1, 2}, api.BadTensor},
		"none alone":        {"prompts", []int32{-1}, []int{2, 2}, []float32{1}, api.BadTensor},
		"nothing":           {"prompts", nil, []int{2, 2}, nil, api.BadTensor},
		"what is no number": {"prompts", []int32{0}, []int{2, 2}, []float32{nan}, api.BadTensor},
	} {
		s, b := conditionRows(c.labels, c.shape, c.values...)
		_, err := put(e, fmt.Sprintf(`{"op":"PutConditions","model":%q}`, c.model), s, b)
		wantCode(t, what, err, c.code)
	}
	if got := rawOf(t, e, "prompts", 0, 1, -1); !slices.Equal(got, []float32{-1, -2, 0}) {
		t.Errorf("F is %v", got)
	}
}

// TestConditionsKeepAModelsOwnSchedules: a table of as many rows leaves schedules per class as they are; another length
// is refused.
func TestConditionsKeepAModelsOwnSchedules(t *testing.T) {
	e := open(t)
	tableModel(t, e, "prompts", "", 2)
	images := api.Schema{Columns: []api.Column{
		tables.ImageColumn("image", api.Float32, data.HWC, 2, 2, 1), {Name: "label", Type: api.Int32},
	}}
	batch := api.Batch{Rows: 2, Cols: []any{make([]float32, 8), []int32{0, 1}}}
	if _, err := put(e, `{"op":"PutDataset","name":"two"}`, images, batch); err != nil {
		t.Fatal(err)
	}
	act(t, e, "CreateRun", `{"name":"r","stage":"isotropic","dataset":"two","model":"prompts","train_network":false,
		"family":{"per_class":true},"batch":2,"estimator":"explicit","T":100,"knots":4}`)
	get(t, e, "TrainStep", `{"run":"r"}`)
	act(t, e, "SaveModel", `{"run":"r","name":"own"}`)
	schedule := act(t, e, "ExportSchedule", `{"schedule":"own"}`)

	s, b := conditionRows([]int32{0, 1, 2}, []int{2, 2}, 5, 6, 7)
	_, err := put(e, `{"op":"PutConditions","model":"own"}`, s, b)
	wantCode(t, "three conditions for two schedules", err, api.BadRequest)
	s, b = conditionRows([]int32{0, 1}, []int{2, 2}, 5, 6)
	if _, err := put(e, `{"op":"PutConditions","model":"own"}`, s, b); err != nil {
		t.Fatal(err)
	}
	if got := rawOf(t, e, "own", 0, 1, -1); !slices.Equal(got, []float32{5, 6, 0}) {
		t.Errorf("F is %v", got)
	}
	after := act(t, e, "ExportSchedule", `{"schedule":"own"}`)
	if fmt.Sprint(after["theta"]) != fmt.Sprint(schedule["theta"]) {
		t.Errorf("the schedule is %v, was %v", after, schedule)
	}
}
