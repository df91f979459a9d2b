package release

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
)

const network = `{"model_type":"SongUNet","img_resolution":8,"img_channels":1,"label_dim":2,"model_channels":4,` +
	`"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`

// folder fills a data folder with one thing of every kind.
var folder = []request{
	{op: "PutDataset", fields: `{"name":"blocks"}`, in: pictures(32)},
	{op: "PutDataset", fields: `{"name":"field","mean":"measured","scale":"measured"}`, in: field(8)},
	{op: "MakeModel", fields: `{"name":"exact","dataset":"blocks","floor":0.05}`},
	{op: "MakeDataset", fields: `{"name":"drawn","model":"exact","n":6}`},
	{op: "MakeBasis", fields: `{"name":"axes","kind":"pca","dataset":"blocks","k":4}`},
	{op: "PutSchedule", fields: `{"name":"table"}`, in: knots()},
	{op: "CreateRun", fields: `{"name":"pretrain","stage":"pretrain","dataset":"blocks","batch":8,"kimg":1,"T":400,` +
		`"network":` + network + `}`},
	{op: "TrainStep", fields: `{"run":"pretrain","steps":4}`, rows: true},
	{op: "SaveModel", fields: `{"run":"pretrain","name":"unet"}`},
	{op: "CreateRun", fields: `{"name":"learned","stage":"anisotropic","model":"unet","dataset":"blocks","batch":8,` +
		`"kimg":1,"T":400,"knots":8,"init":"edm","family":{"basis":"dct","k":16,"per_class":true}}`},
	{op: "TrainStep", fields: `{"run":"learned","steps":4}`, rows: true},
	{op: "SaveModel", fields: `{"run":"learned","name":"joint"}`},
	{op: "MakeSchedule", fields: `{"name":"geodesic","kind":"geodesic","model":"exact","dataset":"blocks","samples":32,` +
		`"points":8,"T":400}`},
	{op: "MakeSchedule", fields: `{"name":"start","kind":"start","dataset":"blocks","sigma_max":10}`},
	{op: "MakePlan", fields: `{"name":"few","model":"exact","dataset":"blocks","nfe":3,"samples":64,` +
		`"solvers":["ipndm","dpmpp2m"]}`},
}

// session asks for everything in the folder, adds to it, and trains on.
var session = []request{
	{op: "ListDatasets"},
	{op: "ListModels"},
	{op: "ListSchedules"},
	{op: "ListBases"},
	{op: "GetRun", fields: `{"run":"learned"}`},
	{op: "DescribeModel", fields: `{"model":"joint"}`},
	{op: "Dataset", fields: `{"dataset":"blocks"}`, rows: true},
	{op: "Dataset", fields: `{"dataset":"field"}`, rows: true},
	{op: "Dataset", fields: `{"dataset":"drawn"}`, rows: true},
	{op: "Basis", fields: `{"basis":"axes"}`, rows: true},
	{op: "Model", fields: `{"model":"unet"}`, rows: true},
	{op: "EvaluateSchedule", fields: `{"schedule":"table","knots":true}`, rows: true},
	{op: "EvaluateSchedule", fields: `{"schedule":"joint","knots":true}`, rows: true},
	{op: "ListPlans"},
	{op: "ExportSchedule", fields: `{"schedule":"geodesic"}`},
	{op: "ExportStart", fields: `{"schedule":"start"}`},
	{op: "PlanSampler", fields: `{"plan":"few"}`},
	{op: "PlanSampler", fields: `{"schedule":"start","model":"exact","nfe":3,"labels":[0,1]}`},
	{op: "Sample", fields: `{"model":"joint","n":3,"steps":4,"dtype":"float32","guidance":1.5}`, rows: true},
	{op: "Sample", fields: `{"model":"exact","n":3,"plan":"few","dtype":"float32"}`, rows: true},
	{op: "Sample", fields: `{"model":"exact","labels":[0,1],"schedule":"start","nfe":4,"every":2}`, rows: true},
	{op: "Sample", fields: `{"model":"nobody","n":1,"steps":2}`, rows: true, refused: true},
	{op: "Denoise", fields: `{"model":"unet"}`, rows: true, in: noisy(2)},
	{op: "EvaluateModel", fields: `{"model":"unet","dataset":"blocks","points":3,"samples":8}`, rows: true},
	{op: "PutDataset", fields: `{"name":"field","replace":true}`, in: pictures(8)},
	{op: "PutSchedule", fields: `{"name":"more"}`, in: knots()},
	{op: "TrainStep", fields: `{"run":"learned","steps":2}`, rows: true},
	{op: "DeleteModel", fields: `{"model":"exact"}`},
	{op: "ListModels"},
}

func pictures(n int) *client.Input {
	pixels, labels := make([]uint8, 64*n), make([]int32, n)
	for i := range pixels {
		pixels[i] = uint8(i * (i%7 + 3))
	}
	for i := range labels {
		labels[i] = int32(i % 2)
	}
	return input(n, []api.Column{tensor("image", api.Uint8), {Name: "label", Type: api.Int32}}, pixels, labels)
}

func field(n int) *client.Input {
	values := make([]float32, 64*n)
	for i := range values {
		values[i] = 273 + float32(i%31)
	}
	return input(n, []api.Column{tensor("image", api.Float32)}, values)
}

func knots() *client.Input {
	return input(3, []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "subspace", Type: api.Int32},
		{Name: "t", Type: api.Float64},
		{Name: "g", Type: api.Float64},
	}, []int32{-1, -1, -1}, []int32{0, 0, 0}, []float64{0, 10, 100}, []float64{1e-4, 1, 100})
}

func noisy(n int) *client.Input {
	x, sigma, labels := make([]float32, 64*n), make([]float64, n), make([]int32, n)
	for i := range x {
		x[i] = float32(i%17)/8 - 1
	}
	for i := range sigma {
		sigma[i] = 0.5
	}
	return input(n, []api.Column{
		tensor("x", api.Float32), {Name: "sigma", Type: api.Float64}, {Name: "label", Type: api.Int32},
	}, x, sigma, labels)
}

func tensor(name string, dtype api.Type) api.Column {
	return api.Column{Name: name, Type: dtype, Kind: api.Tensor, Shape: []int{8, 8, 1}, DimNames: []string{"H", "W", "C"}}
}
