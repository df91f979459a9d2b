package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

// fieldNet is a network of fields of 4×8 points in two channels.
const fieldNet = `{"model_type":"SongUNet","img_resolution":[4,8],"img_channels":2,"model_channels":8,` +
	`"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`

var fieldSchema = api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Float32, data.HWC, 4, 8, 2)}}

// fieldUnits are those of a temperature and of a wind.
var fieldUnits = &normalization.Affine{Mean: []float64{288, -3}, Scale: []float64{24, 9}}

// fields are n smooth fields of 4×8 points in two channels, seen by a network and in units of their own.
func fields(n int) (seen, own []float32) {
	z := noise(n, 5)
	for i := range n {
		a := z[64*i : 64*i+4]
		for y := range 4 {
			for x := range 8 {
				wave := float32(math.Cos(math.Pi * (float64(x) + 0.5) / 8))
				level := float32(math.Cos(math.Pi * (float64(y) + 0.5) / 4))
				seen = append(seen, 0.4*a[0]+0.3*a[1]*wave, 0.3*a[2]*level+0.2*a[0]+0.2*a[3])
			}
		}
	}
	own = slices.Clone(seen)
	fieldUnits.Back(own)
	seen = slices.Clone(own)
	fieldUnits.Forward(seen)
	return seen, own
}

// putField uploads fields; how declares their normalization.
func putField(t *testing.T, e *Engine, name, how string, x []float32) {
	t.Helper()
	command := fmt.Sprintf(`{"op":"PutDataset","name":%q%s}`, name, how)
	upload(t, e, command, fieldSchema, api.Batch{Rows: len(x) / 64, Cols: []any{x}})
}

const declaredUnits = `,"mean":[288,-3],"scale":[24,9]`

// trained makes a model of a few steps on a data set, and returns the hash of its weights.
func trained(t *testing.T, e *Engine, name, dataset string) string {
	t.Helper()
	act(t, e, "CreateRun", fmt.Sprintf(
		`{"name":%q,"stage":"pretrain","dataset":%q,"batch":8,"kimg":1,"lr":0.01,"network":%s}`, name, dataset, fieldNet))
	get(t, e, "TrainStep", fmt.Sprintf(`{"run":%q,"steps":3}`, name))
	return act(t, e, "SaveModel", fmt.Sprintf(`{"run":%q,"name":%q}`, name, name))["hash"].(string)
}

// TestFieldsTrainAndSampleInTheirUnits: a run on fields in units of their own is, to the bit, the run on what the
// network sees of them, and its samples are those of that run in the units of the fields.
func TestFieldsTrainAndSampleInTheirUnits(t *testing.T) {
	e := open(t)
	seen, own := fields(40)
	putField(t, e, "field", declaredUnits, own)
	putField(t, e, "plain", `,"scale":1`, seen)
	if got := column[float32](get(t, e, "Dataset", `{"dataset":"field"}`), "image"); !slices.Equal(got, own) {
		t.Error("fields do not come back as they went")
	}
	if field, plain := trained(t, e, "field", "field"), trained(t, e, "plain", "plain"); field != plain {
		t.Errorf("weights %s on fields, %s on what the network sees of them", field, plain)
	}
	info := act(t, e, "DescribeModel", `{"model":"field"}`)
	if got := fmt.Sprint(info["normalization"]); got != "map[mean:[288 -3] scale:[24 9]]" {
		t.Errorf("the model remembers %v", got)
	}
	const request = `{"model":%q,"n":3,"steps":4,"every":2%s}`
	r, p := get(t, e, "Sample", fmt.Sprintf(request, "field", "")), get(t, e, "Sample", fmt.Sprintf(request, "plain", ""))
	want := slices.Clone(column[float32](p, "sample"))
	fieldUnits.Back(want)
	if got := column[float32](r, "sample"); len(got) == 0 || !slices.Equal(got, want) {
		t.Error("samples and previews are not those of the network in the units of the fields")
	}
	if got := r.schema.Metadata["normalization"]; got != fieldUnits.String() {
		t.Errorf("the reply says %q", got)
	}
	// Another data set, with a normalization of its own, is seen through the model's.
	putField(t, e, "other", `,"scale":"measured"`, own)
	evaluate := func(dataset string) []float64 {
		return column[float64](get(t, e, "EvaluateModel",
			fmt.Sprintf(`{"model":"field","dataset":%q,"schedule":"edm","points":3,"samples":4}`, dataset)), "loss")
	}
	if a, b := evaluate("field"), evaluate("other"); !slices.Equal(a, b) {
		t.Errorf("losses %v and %v", a, b)
	}
	// So it is where a run starts from the model.
	tuned := func(dataset string) ([]float64, []float64) {
		act(t, e, "CreateRun", fmt.Sprintf(`{"name":"tune-%s","stage":"anisotropic","dataset":%q,"batch":8,"kimg":1,`+
			`"knots":6,"init":"edm","model":"field","family":{"basis":"pca","k":3},"train_network":false,"estimator":"full"}`,
			dataset, dataset))
		loss := column[float64](get(t, e, "TrainStep", fmt.Sprintf(`{"run":"tune-%s","steps":1}`, dataset)), "loss")
		act(t, e, "SaveModel", fmt.Sprintf(`{"run":"tune-%s","name":"tune-%s"}`, dataset, dataset))
		return loss, column[float64](get(t, e, "Basis", fmt.Sprintf(`{"schedule":"tune-%s"}`, dataset)), "vector")
	}
	loss, vectors := tuned("field")
	if l, v := tuned("other"); !slices.Equal(l, loss) || !slices.Equal(v, vectors) || len(v) == 0 {
		t.Errorf("a run on the same fields with another normalization: loss %v, not %v", l, loss)
	}
}

// TestTrainStepOnTheCallersFields: rows of an exchange have the units of the run's fields.
func TestTrainStepOnTheCallersFields(t *testing.T) {
	e := open(t)
	seen, own := fields(16)
	putField(t, e, "field", declaredUnits, own)
	putField(t, e, "plain", `,"scale":1`, seen)
	loss := map[string]float64{}
	for name, x := range map[string][]float32{"field": own, "plain": seen} {
		act(t, e, "CreateRun", fmt.Sprintf(
			`{"name":%q,"stage":"pretrain","dataset":%q,"batch":8,"kimg":1,"network":%s}`, name, name, fieldNet))
		exchange, got := converse(t, e, "TrainStep", fmt.Sprintf(`{"run":%q}`, name), labelled(fieldSchema.Columns[0]))
		got.send(t, exchange, 8, slices.Clone(x[:8*64]), make([]int32, 8))
		bad := slices.Clone(x[:8*64])
		bad[3*64+1] = float32(math.NaN())
		err := exchange.Do(t.Context(), api.Batch{Rows: 8, Cols: []any{bad, make([]int32, 8)}}, got.add)
		wantCode(t, "NaN", err, api.BadTensor, "Row 3")
		loss[name] = column[float64](got, "loss")[0]
		if name == "plain" {
			if _, err := exchange.End(t.Context()); err != nil {
				t.Error(err)
			}
		}
		exchange.Close() // the client has left, and its step is stored
		if info := act(t, e, "GetRun", fmt.Sprintf(`{"run":%q}`, name)); info["step"] != 1.0 || info["stored_step"] != 1.0 {
			t.Errorf("step %v, stored %v", info["step"], info["stored_step"])
		}
	}
	if loss["field"] != loss["plain"] || loss["field"] == 0 {
		t.Errorf("losses %v", loss)
	}
	bytes := labelled(tables.ImageColumn("image", api.Uint8, data.HWC, 4, 8, 2))
	_, err := openExchange(t.Context(), e, "TrainStep", `{"run":"field"}`, bytes)
	wantCode(t, "bytes", err, api.BadTensor)
}

// TestLawOfFields: the mixture of fields is their normal law, and what is drawn from it has their moments and units.
func TestLawOfFields(t *testing.T) {
	e := open(t)
	_, own := fields(400)
	putField(t, e, "field", `,"scale":"measured"`, own)
	act(t, e, "MakeModel", `{"name":"law","dataset":"field","covariance":"full"}`)
	const n = 400
	request := fmt.Sprintf(`{"model":"law","n":%d,"steps":18,"grid":"edm"}`, n)
	drawn := column[float32](get(t, e, "Sample", request), "sample")
	act(t, e, "MakeDataset", fmt.Sprintf(`{"name":"drawn","model":"law","n":%d}`, n))
	stored := column[float32](get(t, e, "Dataset", `{"dataset":"drawn"}`), "image")
	moments := func(x []float32, at int) (mean, std float64) {
		m := normalization.NewMeasure(1)
		for i := at; i < len(x); i += 64 {
			m.Add(x[i], 0)
		}
		means, stds := m.Moments()
		return means[0], stds[0]
	}
	for _, at := range []int{0, 1, 30, 63} {
		mean, std := moments(own, at)
		for what, x := range map[string][]float32{"samples": drawn, "a data set drawn from the law": stored} {
			m, s := moments(x, at)
			// Five standard errors of the mean, and of the deviation of normal values.
			if math.Abs(m-mean) > 5*std/math.Sqrt(n) || math.Abs(s-std) > 5*std/math.Sqrt(2*n) {
				t.Errorf("%s: value %d has mean %g and deviation %g, the fields %g and %g", what, at, m, s, mean, std)
			}
		}
	}
}

func TestFieldsAreRefused(t *testing.T) {
	e := open(t)
	_, own := fields(8)
	bad := slices.Clone(own)
	bad[2*64] = float32(math.Inf(1))
	_, err := put(e, `{"op":"PutDataset","name":"x"}`, fieldSchema, api.Batch{Rows: 8, Cols: []any{own}})
	wantCode(t, "no units", err, api.BadTensor, "declares mean and scale")
	_, err = put(e, `{"op":"PutDataset","name":"x"`+declaredUnits+`}`, fieldSchema, api.Batch{Rows: 8, Cols: []any{bad}})
	wantCode(t, "infinite", err, api.BadTensor, "Row 2")
	bytes := api.Schema{Columns: []api.Column{tables.ImageColumn("image", api.Uint8, data.HWC, 4, 8, 2)}}
	_, err = put(e, `{"op":"PutDataset","name":"x","scale":3}`, bytes)
	wantCode(t, "bytes with a scale", err, api.BadRequest)

	putField(t, e, "field", declaredUnits, own)
	act(t, e, "MakeModel", `{"name":"law","dataset":"field"}`)
	refuse(t, e, "Sample", `{"model":"law","n":1,"steps":2,"dtype":"uint8"}`, api.BadRequest) // bytes of fields
	two := api.Batch{Rows: 2, Cols: []any{make([]uint8, 128)}}
	upload(t, e, `{"op":"PutDataset","name":"bytes"}`, bytes, two)
	refuse(t, e, "EvaluateModel", `{"model":"law","dataset":"bytes","schedule":"edm"}`, api.BadRequest)
	refuse(t, e, "CreateRun", `{"name":"r","stage":"isotropic","dataset":"bytes","model":"law","train_network":false}`,
		api.BadRequest)
	putField(t, e, "other", `,"scale":2`, own)
	act(t, e, "MakeModel", `{"name":"other","dataset":"other"}`)
	refuse(t, e, "Sample", `{"model":"law","n":1,"steps":2,"guidance":2,"guide":"other"}`, api.BadRequest)
}

// TestUnitsOfAModel: what is measured of data in units of their own is what the model that is named sees of them, and
// what was measured in other units is refused.
func TestUnitsOfAModel(t *testing.T) {
	e := open(t)
	_, own := fields(40)
	putField(t, e, "same", declaredUnits, own)
	putField(t, e, "other", `,"scale":[2,5]`, own)
	act(t, e, "MakeModel", `{"name":"law","dataset":"same"}`)
	made := func(name, data string) string {
		of := act(t, e, "MakeSchedule", fmt.Sprintf(`{"name":%q,"kind":"start",%s,"replace":true}`, name, data))
		return of["start"].(map[string]any)["hash"].(string)
	}
	law := made("fits", `"dataset":"same"`)
	if got := made("fits", `"dataset":"other","model":"law"`); got != law {
		t.Errorf("the start of the data as the model sees them is %.8s, want %.8s", got, law)
	}
	if made("off", `"dataset":"other"`) == law {
		t.Error("the start does not depend on the data's units")
	}
	get(t, e, "Sample", `{"model":"law","n":1,"steps":2,"schedule":"fits"}`)
	get(t, e, "Sample", `{"model":"law","n":1,"steps":2,"schedule":"off","start":"standard"}`)
	refuse(t, e, "Sample", `{"model":"law","n":1,"steps":2,"schedule":"off"}`, api.BadRequest,
		`made for data with the normalization {"mean":[0,0],"scale":[2,5]}`)
	share := func(data string) float64 {
		of := act(t, e, "MakeBasis", `{"name":"components","kind":"pca","k":4,"replace":true,`+data+`}`)
		return of["spans"].([]any)[0].(map[string]any)["share"].(float64)
	}
	want, got, off := share(`"dataset":"same"`), share(`"dataset":"other","model":"law"`), share(`"dataset":"other"`)
	if got != want || off == want {
		t.Errorf("components hold %g of the variance as the model sees it, %g in other units, want %g", got, off, want)
	}
	refuse(t, e, "MakeBasis", `{"name":"n","kind":"pca","dataset":"same","model":"nobody"}`, api.ModelNotFound)
}
