package catalog

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// keptSuffix is added to the folder of a schedule of 0.1 that has become a plan. It is not read again.
const keptSuffix = "-0.1"

// moveSamplers turns the schedules that version 0.1 stored for a sampler of their own into plans of their names.
func (c *Catalog) moveSamplers(log *slog.Logger) {
	for _, name := range c.schedules.names() {
		s := c.schedules.items[name]
		if s.Sampler() == nil {
			continue
		}
		folder := c.schedules.folder(name)
		err := c.moveSampler(s, folder)
		if err == nil {
			err = os.Rename(folder, folder+keptSuffix)
		}
		c.schedules.drop(name)
		if err != nil {
			c.schedules.recordRead(log, name, s, fmt.Errorf("its sampler of 0.1 cannot become a plan: %w", err))
			continue
		}
		log.Info("a sampler that 0.1 stored as a schedule is a plan now", "name", name, "kept", folder+keptSuffix)
	}
}

func (c *Catalog) moveSampler(s Schedule, folder string) error {
	if c.plans.inUse(s.Name) { // a crash came between the two steps
		return nil
	}
	samplers, err := checkpoint.LoadSamplers(folder, s.Schedule)
	if err != nil {
		return err
	}
	file := DescribePlan(samplers[0].Plan)
	file.Schedule, file.Family, file.Solver = s.Name, api.Family(s.Family()), s.Sampler().Solver
	for row, one := range samplers {
		numbers := Numbers(one.Plan, one.Tails)
		if labels := s.Labels(); labels != nil {
			file.Classes = append(file.Classes, api.PlanClass{Labels: []int32{int32(labels[row])}, PlanNumbers: numbers})
		} else {
			file.PlanNumbers = numbers
		}
	}
	if p := s.Provenance(); p != nil {
		if p.Few != nil {
			file.Info = p.Few
		}
		p.Few = nil
		file.Provenance = p
	}
	if file.Start = s.StartInfo(); s.Start != nil {
		if file.Law, err = checkpoint.StartFile.Encode(s.Start); err != nil {
			return err
		}
		if own := s.Start.Labels(); own != nil && file.Classes == nil { // Each class has its law.
			file.Classes = []api.PlanClass{{Labels: append([]int32{-1}, int32s(own)...), PlanNumbers: file.PlanNumbers}}
			file.PlanNumbers = api.PlanNumbers{}
		}
	}
	if s.Basis != nil {
		if file.Vectors, err = checkpoint.EncodeBasis(s.Basis); err != nil {
			return err
		}
	}
	p, err := NewPlan(s.Name, file)
	if err != nil {
		return err
	}
	return c.plans.put(s.Name, p)
}
