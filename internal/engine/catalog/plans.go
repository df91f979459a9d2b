package catalog

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// LoadPlan reads the folder of a plan.
func LoadPlan(folder string) (*Plan, error) { return loadPlan("", folder) }

func loadPlan(name, folder string) (*Plan, error) {
	text, law, vectors, err := checkpoint.LoadPlan(folder)
	if err != nil {
		return nil, err
	}
	var file api.Plan
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	file.Law, file.Vectors = law, vectors
	return NewPlan(name, file)
}

func savePlan(folder string, p *Plan) error {
	file, err := p.Whole()
	if err != nil {
		return err
	}
	text, err := json.Marshal(p.File)
	if err != nil {
		return err
	}
	return checkpoint.SavePlan(folder, text, file.Law, file.Vectors)
}

// PlanNamed returns the plan of a request: a stored one, or the one that it has.
func (c *Catalog) PlanNamed(ref api.PlanRef) (*Plan, error) {
	if ref.File != nil {
		return DecodePlan("", ref.File)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if p, ok := c.plans.items[ref.Name]; ok {
		return p, nil
	}
	if err := c.plans.damaged[ref.Name]; err != nil {
		return nil, err
	}
	return nil, api.NotFound(api.PlanNotFound, "plan", ref.Name, c.plans.names())
}

// NetworkFor returns the programs of a model's network for the basis of a plan.
func (c *Catalog) NetworkFor(p *Plan, m *Model) (*kernels.Model, error) {
	h, w, _ := m.ImageSize()
	b, err := c.BasisFor(schedule.Family(p.File.Family), h, w, p.Basis, m)
	if err != nil {
		return nil, err
	}
	if j := len(p.plans[0].Init); b.J() != j {
		return nil, api.Errorf(api.BadRequest, "The plan%s has %d subspaces, its basis %q splits images into %d", p.quoted(),
			j, p.File.Family.Basis, b.J())
	}
	return m.NetworkOn(b)
}

// PlanInfos describes the stored plans.
func (c *Catalog) PlanInfos() []api.PlanInfo {
	return infos(&c.plans.shelf, func(_ string, p *Plan) api.PlanInfo { return p.Describe() },
		func(name string, files api.Integrity) api.PlanInfo { return api.PlanInfo{Name: name, Integrity: files} })
}

// FreePlan checks that a plan may be stored under name.
func (c *Catalog) FreePlan(name string, replace bool) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return free("plan", name, c.plans.inUse(name), replace)
}

// StorePlan stores a plan by its name and describes it.
func (c *Catalog) StorePlan(p *Plan, replace bool) (info api.PlanInfo, err error) {
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreePlan(p.Name, replace); err != nil {
		return info, err
	}
	return p.Describe(), c.plans.put(p.Name, p)
}

// ImportPlan stores the plan of a request.
func (c *Catalog) ImportPlan(_ context.Context, req api.ImportPlan) (info api.PlanInfo, err error) {
	if err := c.FreePlan(req.Name, req.Replace); err != nil {
		return info, err
	}
	p, err := DecodePlan(req.Name, req.Plan)
	if err != nil {
		return info, err
	}
	return c.StorePlan(p, req.Replace)
}

// DeletePlan deletes a stored plan.
func (c *Catalog) DeletePlan(_ context.Context, req api.PlanName) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	if _, err := c.PlanNamed(api.PlanRef{Name: req.Plan}); err != nil && api.ErrorOf(err).Code != api.Damaged {
		return err
	}
	return c.plans.remove(req.Plan)
}
