package api

import (
	"bytes"
	"encoding/json"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// The named grids of Sample.
const (
	GridSchedule   = "schedule"   // uniform in the schedule's t
	GridEDM        = "edm"        // EDM's σ rule, mapped to times by the geometric mean of the g_j, then t = 0
	GridPolynomial = "polynomial" // EDM's σ rule with n + 1 levels for n steps, the last of which ends at σ_min
	GridLogSNR     = "logsnr"     // uniform in ln σ
	GridGeodesic   = "geodesic"   // equal lengths of ∫√(Σ_j ġ_j² F_j) dt
	GridTimes      = "t"          // an explicit list of times
	GridSigmas     = "sigma"      // an explicit list of σ, or one per subspace
	GridTable      = "table"      // a published list of σ, interpolated to the number of steps
)

// GridNames lists the grids that need no more than their name.
var GridNames = []string{GridSchedule, GridEDM, GridPolynomial, GridLogSNR, GridGeodesic}

// Grid says at which times a sampler evaluates the network. Its JSON is a name, or one of
//
//	{"edm":{"sigma_min":0.002,"sigma_max":80,"rho":7}}   {"polynomial":{...}}   {"t":[...]}
//	{"sigma":[...]}   {"sigma":[[...],[...]]}   {"table":"ays-sd15"}
//
// An explicit list runs from noise to data and holds every time including the last.
type Grid struct {
	Kind     string
	SigmaMin float64     // of GridEDM and GridPolynomial; default 0.002
	SigmaMax float64     // of GridEDM and GridPolynomial; default 80
	Rho      float64     // of GridEDM and GridPolynomial; default 7
	T        []float64   // of GridTimes
	Sigma    [][]float64 // of GridSigmas: one list, or one for each subspace
	Table    string      // of GridTable: one of Tables
}

// Tables lists the tables by the names of the contract: Align Your Steps for Stable Diffusion 1.5, XL and Video.
var Tables = solver.Tables()

// Explicit reports whether the grid is a list, which needs neither steps nor nfe.
func (g Grid) Explicit() bool { return g.Kind == GridTimes || g.Kind == GridSigmas }

// levelRule is what GridEDM and GridPolynomial take.
type levelRule struct {
	SigmaMin float64 `json:"sigma_min"`
	SigmaMax float64 `json:"sigma_max"`
	Rho      float64 `json:"rho"`
}

// decodeStrictly takes a name, or an object with one name and what it says.
func (g *Grid) decodeStrictly(at place, v rawValue) error {
	*g = Grid{}
	if v.Kind() == '"' {
		if err := decodeJSON(v, at, &g.Kind); err != nil {
			return err
		}
		if g.Kind == GridEDM || g.Kind == GridPolynomial {
			g.setRule(edmRule)
		}
		return oneOf(at.String(), g.Kind, GridNames...)
	}
	var form struct {
		EDM        levelRule `json:"edm"`
		Polynomial levelRule `json:"polynomial"`
		T          []float64 `json:"t"`
		Sigma      rawValue  `json:"sigma"`
		Table      string    `json:"table"`
	}
	form.EDM, form.Polynomial = edmRule, edmRule
	for name, value := range fieldsIn(v) {
		if g.Kind = name; value.Kind() == 'n' {
			g.Kind = ""
		}
	}
	if len(fieldsIn(v)) != 1 || g.Kind == "" {
		return wrongJSON(at,
			`a name, {"edm":{...}}, {"polynomial":{...}}, {"t":[...]}, {"sigma":[...]} or {"table":"..."}`, v)
	}
	if err := decodeJSON(v, at, &form); err != nil {
		return err
	}
	at = at.field(g.Kind)
	switch g.Kind {
	case GridEDM:
		return g.checkRule(at, form.EDM)
	case GridPolynomial:
		return g.checkRule(at, form.Polynomial)
	case GridTimes:
		g.T = form.T
		return checkFalling(at, g.T)
	case GridTable:
		g.Table = form.Table
		return oneOf(at.String(), g.Table, Tables...)
	}
	return g.setSigma(at, form.Sigma)
}

// edmRule is EDM's.
var edmRule = levelRule{0.002, 80, 7}

func (g *Grid) setRule(r levelRule) { g.SigmaMin, g.SigmaMax, g.Rho = r.SigmaMin, r.SigmaMax, r.Rho }

func (g *Grid) checkRule(at place, r levelRule) error {
	g.setRule(r)
	if !(0 < g.SigmaMin && g.SigmaMin < g.SigmaMax && g.Rho > 0) {
		return Errorf(BadRequest, "%s needs 0 < sigma_min < sigma_max and rho > 0, not sigma_min %g, sigma_max %g, rho %g",
			at, g.SigmaMin, g.SigmaMax, g.Rho)
	}
	return nil
}

// setSigma takes one list of noise levels, or one for each subspace.
func (g *Grid) setSigma(at place, v rawValue) error {
	var err error
	if bytes.HasPrefix(v, []byte("[[")) {
		err = decodeJSON(v, at, &g.Sigma)
	} else {
		g.Sigma = make([][]float64, 1)
		err = decodeJSON(v, at, &g.Sigma[0])
	}
	for _, list := range g.Sigma {
		if err == nil {
			err = checkFalling(at, list)
		}
		if err == nil && len(list) != len(g.Sigma[0]) {
			err = Errorf(BadRequest, "%s must hold lists of one length, not %d and %d", at, len(g.Sigma[0]), len(list))
		}
	}
	return err
}

// checkFalling wants at least two numbers ≥ 0, each less than the one before.
func checkFalling(at place, x []float64) error {
	if len(x) < 2 {
		return Errorf(BadRequest, "%s must hold at least two numbers, where to start and where to end, not %d",
			at, len(x))
	}
	for i, v := range x {
		switch {
		case v < 0:
			return Errorf(BadRequest, "%s must not be negative; entry %d is %g", at, i, v)
		case i > 0 && v >= x[i-1]:
			return Errorf(BadRequest, "%s must fall strictly from noise to data; entry %d is %g after %g",
				at, i, v, x[i-1])
		}
	}
	return nil
}

// MarshalJSON writes the form that decodes to g.
func (g Grid) MarshalJSON() ([]byte, error) {
	switch g.Kind {
	case "":
		return json.Marshal(GridSchedule)
	case GridEDM, GridPolynomial:
		return json.Marshal(map[string]any{g.Kind: levelRule{g.SigmaMin, g.SigmaMax, g.Rho}})
	case GridTimes:
		return json.Marshal(map[string]any{GridTimes: g.T})
	case GridTable:
		return json.Marshal(map[string]any{GridTable: g.Table})
	case GridSigmas:
		if len(g.Sigma) == 1 {
			return json.Marshal(map[string]any{GridSigmas: g.Sigma[0]})
		}
		return json.Marshal(map[string]any{GridSigmas: g.Sigma})
	}
	return json.Marshal(g.Kind)
}

// UnmarshalJSON reads a grid strictly.
func (g *Grid) UnmarshalJSON(body []byte) error {
	v, err := readJSON(body)
	if err != nil {
		return err
	}
	return g.decodeStrictly(place{}.field("grid"), v)
}
