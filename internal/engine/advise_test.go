package engine

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Advice is told in items for people, with requests to go on with, of the data alone and of a model on them.
func TestAdviceIsWorded(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 128)
	act(t, e, "MakeModel", `{"name":"law","dataset":"smooth","floor":1e-6}`)
	alone := reply[api.Advice](t, e, "Advise", `{"dataset":"smooth","nfe":[5,18]}`)
	got := reply[api.Advice](t, e, "Advise", `{"dataset":"smooth","model":"law","seed":3,"nfe":[5,18],"samples":32}`)
	for _, a := range []api.Advice{alone, got} {
		names := ""
		for _, i := range a.Items {
			names += i.Name + " "
			if i.Value == "" || !strings.HasSuffix(i.Because, ".") {
				t.Errorf("item %+v", i)
			}
		}
		want := "sigma_data sigma_min sigma_max T c P_mean P_std training subspaces schedule 5 evaluations 18 evaluations "
		if names != want {
			t.Errorf("items %q, want %q", names, want)
		}
		if s := a.Samplers[0]; s.NFE != 5 || s.EDM.SigmaMax != a.SigmaMax || s.IPNDM.Solver != "ipndm" {
			t.Errorf("samplers %+v", s)
		}
	}
	for i, r := range got.ModelRatio {
		if math.Abs(r-got.Ratio[i]) > 0.35*got.Ratio[i] { // more than ten standard errors of 32 images of 64 values
			t.Errorf("at σ %g the model leaves %g, the Gaussian %g", got.Sigma[i], r, got.Ratio[i])
		}
	}
	if len(got.ModelRatio) == 0 || alone.ModelRatio != nil || got.Subspaces.Stderr == 0 ||
		!strings.Contains(fmt.Sprint(got.Items), "model law") || strings.Contains(fmt.Sprint(alone.Items), "law ") {
		t.Errorf("with the model %+v, without %+v", got, alone)
	}
}
