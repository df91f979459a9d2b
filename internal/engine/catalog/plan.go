package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Plan is a sampler as numbers, for any network of its noise levels and, if it has parts or a start, image size.
type Plan struct {
	Name  string       // empty if a request has the plan itself
	File  api.Plan     // without Law and Vectors
	Start *start.Start // nil for noise alone
	Basis *basis.Basis // of vectors; nil if a formula gives the basis, or it is stored by the name of the family

	plans []*solver.Plan // of the classes, or one
}

// mostHistory is the largest history of a plan: the evaluations, and their states, that a sampler keeps.
const mostHistory = 16

// NewPlan checks a plan with its law and vectors. Errors are *api.Error.
func NewPlan(name string, file api.Plan) (*Plan, error) {
	p := &Plan{Name: name, File: file}
	p.File.Law, p.File.Vectors = nil, nil
	if err := p.read(file); err != nil {
		return nil, api.Errorf(api.BadSchedule, "The plan cannot be used: %w", err).
			WithHint("Take it as PlanSampler, MakePlan or Plan.save wrote it.")
	}
	return p, nil
}

// DecodePlan reads the JSON of a plan, whose fields of later versions are left out.
func DecodePlan(name string, text []byte) (*Plan, error) {
	var file api.Plan
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&file); err != nil {
		return nil, api.Errorf(api.BadSchedule, "The plan cannot be read: %w", err).
			WithHint("Take it as PlanSampler, MakePlan or Plan.save wrote it.")
	}
	return NewPlan(name, file)
}

// Whole returns the plan with its law and vectors.
func (p *Plan) Whole() (api.Plan, error) {
	out := p.File
	var err error
	if p.Start != nil {
		if out.Law, err = checkpoint.StartFile.Encode(p.Start); err != nil {
			return out, err
		}
	}
	if p.Basis != nil {
		out.Vectors, err = checkpoint.EncodeBasis(p.Basis)
	}
	return out, err
}

func (p *Plan) read(file api.Plan) (err error) {
	if file.Format != api.PlanFormat || file.Version != api.PlanVersion {
		return fmt.Errorf("format and version must be %s and %d, got %q and %d", api.PlanFormat, api.PlanVersion,
			file.Format, file.Version)
	}
	if file.Begin != nil {
		return fmt.Errorf("begin must be left out, got %d: a tail starts from an image, "+
			"and servers sample and store whole plans", *file.Begin)
	}
	for name, value := range map[string]any{"info": file.Info, "provenance": file.Provenance} {
		switch value.(type) {
		case string, float64, bool, []any:
			return fmt.Errorf("%s must be an object, got %v", name, value)
		}
	}
	if (file.Start != nil) != (file.Law != nil) {
		return fmt.Errorf("start and law, the file start.safetensors in base64, must both be there or neither")
	}
	if file.Law != nil {
		if p.Start, err = checkpoint.StartFile.Decode(file.Law); err != nil {
			return err
		}
		hash, err := checkpoint.StartFile.Hash(p.Start)
		if err != nil {
			return err
		}
		if hash != file.Start.Hash {
			return fmt.Errorf("law must be the file of hash %.12s, got %.12s", file.Start.Hash, hash)
		}
	}
	if file.Vectors != nil {
		if p.Basis, err = checkpoint.DecodeBasis(file.Vectors); err != nil {
			return err
		}
	}
	if file.Predicts != api.PredictsFlow && file.Predicts != api.PredictsDenoised {
		return fmt.Errorf("predicts must be flow or denoised, got %q", file.Predicts)
	}
	if file.NFE < 1 || file.Steps < 1 || file.History < 0 || file.History > mostHistory {
		return fmt.Errorf("nfe and steps must be positive, and history lie in 0 … %d, got %d, %d and %d", mostHistory,
			file.NFE, file.Steps, file.History)
	}
	classes := file.Classes
	if classes == nil {
		classes = []api.PlanClass{{PlanNumbers: file.PlanNumbers}}
	}
	var seen []int32
	size := 0
	for _, c := range classes {
		for _, label := range c.Labels {
			if label < -1 || slices.Contains(seen, label) {
				return fmt.Errorf("labels must be −1 or classes, each once, got %d", label)
			}
			seen = append(seen, label)
		}
		if file.Classes != nil && len(c.Labels) == 0 {
			return fmt.Errorf("classes must each have labels")
		}
		if len(c.Stages) > 0 {
			size += len(c.Stages) * max(1, len(c.Stages[0].Alpha))
		}
	}
	if size > api.MaxPlan {
		return fmt.Errorf("it must have at most %d evaluations times parts, got %d", api.MaxPlan, size)
	}
	for i, c := range classes {
		made, err := planOf(file, c.PlanNumbers)
		if err != nil {
			return err
		}
		if made.Coordinates != nil {
			made.Coordinates.Row = i
		}
		p.plans = append(p.plans, made)
	}
	return p.share()
}

// share checks that the plans of all classes have one structure, and gives them one list of axes.
func (p *Plan) share() error {
	first := p.plans[0]
	var axes [][]float64
	for _, q := range p.plans {
		if len(q.Init) != len(first.Init) || (q.Coordinates == nil) != (first.Coordinates == nil) {
			return fmt.Errorf("classes must have one structure")
		}
		for k, st := range q.Stages {
			if st.Step != first.Stages[k].Step {
				return fmt.Errorf("classes must have the same steps")
			}
			if !st.GuidedAs(first.Stages[k]) {
				return fmt.Errorf("guidance must be the same for all classes")
			}
		}
		if q.Coordinates != nil {
			if q.Coordinates.Bands != first.Coordinates.Bands {
				return fmt.Errorf("classes must have the same coordinates")
			}
			axes = append(axes, q.Coordinates.Axes[0])
		}
	}
	for _, q := range p.plans {
		if q.Coordinates != nil {
			q.Coordinates.Axes = axes
		}
	}
	return nil
}

// planOf returns the numbers of a class as a plan.
func planOf(file api.Plan, n api.PlanNumbers) (*solver.Plan, error) {
	p := &solver.Plan{
		Init: n.Init, T: n.T, NFE: file.NFE, History: file.History, States: file.States,
		Data: file.Predicts == api.PredictsDenoised,
	}
	j := len(n.Init)
	parts := j
	if own := n.Coordinates; own != nil {
		bands := basis.Bands{H: own.Height, W: own.Width, C: own.Channels, N: own.Bands}
		const side = 1 << 12
		if min(bands.H, bands.W, bands.C) < 1 || max(bands.H, bands.W, bands.C) > side || bands.N < 0 || bands.N > side {
			return nil, fmt.Errorf("coordinates must have sizes in 1 … %d, got %d×%d×%d in %d bands", side, bands.H, bands.W,
				bands.C, bands.N)
		}
		if most := 1 << 22; bands.H*bands.W > most {
			return nil, fmt.Errorf("coordinates must be of at most %d pixels, got %d×%d", most, bands.H, bands.W)
		}
		if parts = bands.Parts(); j != 1 {
			return nil, fmt.Errorf("coordinates must be of one subspace, got %d", j)
		}
		if own.Axes != nil {
			if len(own.Axes) != parts*bands.C {
				return nil, fmt.Errorf("axes must be %d numbers, got %d", parts*bands.C, len(own.Axes))
			}
			for block := range slices.Chunk(own.Axes, bands.C*bands.C) {
				if _, _, _, ok := basis.Orthonormal(slices.Collect(slices.Chunk(block, bands.C))); !ok {
					return nil, fmt.Errorf("axes must be orthonormal")
				}
			}
		}
		p.Coordinates = &solver.Coordinates{Bands: bands, Axes: [][]float64{own.Axes}}
	}
	if j < 1 || len(n.Stages) != file.NFE || len(n.T) != file.Steps+1 {
		return nil, fmt.Errorf("it must have levels to begin at, %d stages and %d times, got %d, %d and %d", file.NFE,
			file.Steps+1, j, len(n.Stages), len(n.T))
	}
	if err := positive("init", n.Init); err != nil {
		return nil, err
	}
	for i, t := range n.T {
		if !(t >= 0) || math.IsInf(t, 1) || i > 0 && t >= n.T[i-1] {
			return nil, fmt.Errorf("t must fall, got %v", n.T)
		}
	}
	step := 0
	for k, s := range n.Stages {
		if s.Step == step {
			step++
		} else if s.Step != -1 {
			return nil, fmt.Errorf("stages must end the steps 0 … %d in order, got %d", file.Steps-1, s.Step)
		}
		if err := positive("g", s.G); err != nil {
			return nil, err
		}
		if len(s.G) != j || s.Noise != nil && len(s.Noise) != j {
			return nil, fmt.Errorf("g, and noise if there is some, must be of %d subspaces", j)
		}
		for _, v := range s.Noise {
			if !(v >= 0) || math.IsInf(v, 1) {
				return nil, fmt.Errorf("noise must be finite and not negative, got %v", v)
			}
		}
		if s.Guidance != nil && *s.Guidance-*s.Guidance != 0 {
			return nil, fmt.Errorf("guidance must be finite, got %v", *s.Guidance)
		}
		if err := checkWeights(file, k, parts, s.Alpha, s.Beta); err != nil {
			return nil, err
		}
		p.Stages = append(p.Stages, solver.Stage(s))
	}
	if step != file.Steps || n.Stages[len(n.Stages)-1].Step < 0 {
		return nil, fmt.Errorf("stages must end %d steps, got %d", file.Steps, step)
	}
	if len(n.Tails) != 0 && len(n.Tails) != file.Steps-1 {
		return nil, fmt.Errorf("tails must be of the steps 1 … %d", file.Steps-1)
	}
	for i, tail := range n.Tails {
		if len(tail) > file.Steps-1-i {
			return nil, fmt.Errorf("tails must not be longer than what is left, got %d stages from step %d", len(tail), i+1)
		}
		for k, s := range tail {
			if err := checkWeights(file, k, parts, s.Alpha, s.Beta); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// positive checks numbers that must be positive and finite.
func positive(name string, values []float64) error {
	for _, v := range values {
		if !(v >= math.SmallestNonzeroFloat64) || math.IsInf(v, 1) {
			return fmt.Errorf("%s must be positive and finite, got %v", name, v)
		}
	}
	return nil
}

// checkWeights checks the combination of stage k, which has evaluations of itself and of the k before it.
func checkWeights(file api.Plan, k, parts int, alpha []float64, beta [][]float64) error {
	each := 1
	if file.States {
		each = 2
	}
	if len(alpha) != parts || len(beta) != parts {
		return fmt.Errorf("alpha and beta must be of %d parts, got %d and %d", parts, len(alpha), len(beta))
	}
	for f, b := range beta {
		if len(b) < 1 || len(b) > file.History {
			return fmt.Errorf("beta must have 1 to %d numbers, got %d", file.History, len(b))
		}
		for i, v := range append([]float64{alpha[f]}, b...) {
			if v-v != 0 || v != 0 && i > each*(k+1) {
				return fmt.Errorf("alpha and beta must be finite, and of evaluations made before, got %v in stage %d", v, k)
			}
		}
	}
	return nil
}

// Labels returns the classes of a plan of several, nil for another.
func (p *Plan) Labels() (out []int32) {
	for _, c := range p.File.Classes {
		out = append(out, c.Labels...)
	}
	slices.Sort(out)
	return out
}

// differs reports whether another class would have another plan.
func (p *Plan) differs() bool {
	return p.File.Family.PerClass || p.Basis != nil && p.Basis.PerClass() || p.Start != nil && p.Start.Labels() != nil
}

// Guides reports whether the plan sets the guidance of its evaluations.
func (p *Plan) Guides() bool { return slices.ContainsFunc(p.plans, (*solver.Plan).Guides) }

// For returns the plan of a label, and which of the plans it is.
func (p *Plan) For(label int32) (*solver.Plan, int, error) {
	for i, c := range p.File.Classes {
		if slices.Contains(c.Labels, label) {
			return p.plans[i], i, nil
		}
	}
	if p.File.Classes == nil && (label == p.File.Label || !p.differs()) {
		return p.plans[0], 0, nil
	}
	labels := p.Labels()
	if labels == nil {
		labels = []int32{p.File.Label}
	}
	return nil, 0, api.Errorf(api.BadRequest, "The plan%s has no class %d", p.quoted(), label).
		WithHint("It is of the classes %v. Make a plan for all labels.", labels)
}

func (p *Plan) quoted() string {
	if p.Name == "" {
		return ""
	}
	return fmt.Sprintf(" %q", p.Name)
}

// origin is what the provenance of a plan says of its network.
type origin struct {
	Model *struct {
		Name string `json:"name"`
		Hash string `json:"hash"`
	} `json:"model"`
	Clip *float64 `json:"clip"` // bounds |x_0| in a network of a client
}

// CheckNetwork refuses a model of other weights than those that the plan was made for, unless any will do, and images
// of another size than its parts.
func (p *Plan) CheckNetwork(m *Model, anyWeights bool) error {
	var of origin
	text, err := json.Marshal(p.File.Provenance)
	if err == nil {
		_ = json.Unmarshal(text, &of) // absent, or another's
	}
	if of.Model != nil && of.Model.Hash != "" && of.Model.Hash != m.Hash && !anyWeights {
		return api.Errorf(api.BadRequest, "The plan%s was made for the weights %.12s of the model %q, those of %q are %.12s",
			p.quoted(), of.Model.Hash, of.Model.Name, m.Name, m.Hash).
			WithHint("Make one for this model, or set other_weights.")
	}
	if of.Clip != nil {
		return api.Errorf(api.BadRequest,
			"The plan%s is of a network whose images are clipped to ±%g, which models here are not", p.quoted(), *of.Clip).
			WithHint("Make one for this model.")
	}
	h, w, c := m.ImageSize()
	if of := p.plans[0].Coordinates; of != nil && (of.H != h || of.W != w || of.C != c) {
		return api.Errorf(api.BadRequest, "The plan%s is for images of %d×%d×%d, those of the model %q have %d×%d×%d",
			p.quoted(), of.H, of.W, of.C, m.Name, h, w, c).WithHint("Make a plan for the model itself.")
	}
	for _, q := range p.plans {
		if err := m.CheckPlan(q); err != nil {
			return err
		}
	}
	return nil
}

// Describe describes the plan as lists do.
func (p *Plan) Describe() api.PlanInfo {
	out := api.PlanInfo{
		Name: p.Name, NFE: p.File.NFE, Steps: p.File.Steps, Solver: p.File.Solver, Labels: p.Labels(), Start: p.File.Start,
		Provenance: p.File.Provenance, Integrity: api.Integrity{State: api.Intact},
	}
	var info struct {
		Summary string `json:"summary"`
	}
	if text, err := json.Marshal(p.File.Info); err == nil && json.Unmarshal(text, &info) == nil {
		out.Summary = info.Summary
	}
	return out
}

// DescribePlan describes a plan without its numbers, of no label and with the solver and schedule left out.
func DescribePlan(p *solver.Plan) api.Plan {
	out := api.Plan{
		Format: api.PlanFormat, Version: api.PlanVersion, Label: -1, Steps: p.Steps(), NFE: p.NFE,
		Predicts: api.PredictsFlow, History: p.History, States: p.States,
	}
	if p.Data {
		out.Predicts = api.PredictsDenoised
	}
	return out
}

// Numbers returns the numbers of a plan with its tails, which may be nil.
func Numbers(p *solver.Plan, tails [][]solver.Stage) api.PlanNumbers {
	out := api.PlanNumbers{T: p.T, Init: p.Init}
	if bands := p.Coordinates; bands != nil {
		out.Coordinates = &api.PlanCoordinates{
			Height: bands.H, Width: bands.W, Channels: bands.C, Bands: bands.N, Axes: bands.Axes[bands.Row],
		}
	}
	for _, stage := range p.Stages {
		out.Stages = append(out.Stages, api.PlanStage(stage))
	}
	for _, tail := range tails {
		stages := make([]api.PlanTail, len(tail))
		for i, stage := range tail {
			stages[i] = api.PlanTail{Alpha: stage.Alpha, Beta: stage.Beta}
		}
		out.Tails = append(out.Tails, stages)
	}
	return out
}
