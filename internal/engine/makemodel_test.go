package engine

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// two is a mixture of two points' clouds in the plane, one per class, on 1×2 pixels.
const two = `{"name":"two","weights":[3,1],"means":[[0.5,0],[-0.5,0.25]],
	"covariances":[[[0.04,0.01],[0.01,0.02]],[[0.01,0],[0,0.03]]],"labels":[0,1]}`

// A mixture is a model like others: it is described, sampled, measured, trained on, saved with what was learned, and
// read again.
func TestMixtureIsAModel(t *testing.T) {
	e := open(t)
	info := act(t, e, "MakeModel", two)
	if info["model_type"] != "Mixture" || info["img_resolution"] != 1.0 || info["img_width"] != 2.0 ||
		info["label_dim"] != 2.0 || info["parameters"] != 16.0 {
		t.Errorf("made %v", info)
	}
	act(t, e, "MakeDataset", `{"name":"clouds","model":"two","n":400,"seed":1}`)
	// Where the noise is far above the data the residual of class 0 tends to nothing, far below to the dimension.
	r := get(t, e, "EvaluateModel",
		`{"model":"two","dataset":"clouds","schedule":{"edm":{"T":400}},"points":8,"samples":64}`)
	residual := column[float64](r, "residual")
	if first, last := residual[0], residual[7]; !(first > last) || last > 0.05 {
		t.Errorf("residuals %v", residual)
	}

	samples := get(t, e, "Sample",
		`{"model":"two","labels":[0,0,0,0,1,1,1,1],"nfe":15,"dtype":"float32","schedule":{"edm":{"T":400}}}`)
	for i, v := range column[float32](samples, "sample") {
		want := []float64{0.5, -0.5}[i/8]
		if i%2 == 0 && math.Abs(float64(v)-want) > 1 {
			t.Errorf("sample %d is at %g, its class at %g", i/2, v, want)
		}
	}

	run := `"stage":"isotropic","dataset":"clouds","model":"two","T":400,"knots":8,"batch":32,"kimg":0.096`
	refuse(t, e, "CreateRun", `{"name":"r",`+run+`}`, api.BadRequest) // a mixture that is to be trained
	act(t, e, "CreateRun", `{"name":"r",`+run+`,"train_network":false,"family":{"per_class":true,"basis":"none"}}`)
	get(t, e, "TrainStep", `{"run":"r","steps":3}`)
	saved := act(t, e, "SaveModel", `{"run":"r","name":"learned"}`)
	if saved["model_type"] != "Mixture" || saved["hash"] != info["hash"] ||
		saved["schedule"].(map[string]any)["per_class"] != true {
		t.Errorf("saved %v, made %v", saved, info)
	}
	again := reopen(t, e.cfg.Dir, Config{})
	if got := act(t, again, "DescribeModel", `{"model":"learned"}`); got["hash"] != info["hash"] {
		t.Errorf("read again: %v", got)
	}
	get(t, again, "TrainStep", `{"run":"r","steps":1}`)
}

// A mixture of a data set's classes takes noise in the subspaces that its covariance knows.
func TestMixtureOfADataSet(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 48)
	for _, covariance := range []string{"dct", "full"} {
		info := act(t, e, "MakeModel", `{"name":"gmm-`+covariance+`","dataset":"smooth","covariance":"`+covariance+`"}`)
		if info["parameters"] != 64.0*66 {
			t.Errorf("%s: made %v", covariance, info)
		}
	}
	// The anisotropic noise of a run: exact on the covariance that is diagonal in the DCT.
	act(t, e, "CreateRun",
		`{"name":"a","stage":"anisotropic","dataset":"smooth","model":"gmm-dct","train_network":false,"T":400,"knots":8,`+
			`"batch":16,"kimg":0.032}`)
	get(t, e, "TrainStep", `{"run":"a","steps":2}`)
	for body, code := range map[string]api.Code{
		`{"name":"x"}`: api.BadRequest,
		`{"name":"x","dataset":"smooth","covariance":"mine"}`: api.BadRequest,
		`{"name":"x","dataset":"smooth","floor":-1}`:          api.BadRequest,
		`{"name":"tiny","means":[[0]],"covariances":[[[1]]]}`: api.NameTaken,
	} {
		refuse(t, e, "MakeModel", body, code)
	}
	refuse(t, e, "MakeDataset", `{"name":"x","model":"tiny","n":3}`, api.BadRequest) // draws from a UNet
}
