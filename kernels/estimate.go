package kernels

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// EstimateInput is a batch for [Model.Estimate].
type EstimateInput struct {
	Mode Mode // "" means Auto

	X0    []float32 // [B, H, W, C] images
	Eps   []float32 // [B, H, W, C] noise, unit normal
	Probe []float32 // [B, H, W, C] with E zzᵀ = I; nil for Backprop and Explicit

	G      []float64 // [B*J] noise variances
	Omega  []float64 // [B*J] loss weights ω_j
	Labels []int32   // [B], −1 for none; nil for all −1
}

// Estimate computes the terms of the schedule's gradient, per sample and subspace. Dropout is off.
func (m *Model) Estimate(ctx context.Context, w *Weights, in EstimateInput) (*Terms, error) {
	return estimate(ctx, m, w, in.Mode, in.X0, in.Eps, in.Probe, in.G, in.Omega, in.Labels)
}

func estimate[T device.Float](ctx context.Context, m *Model, w *Weights, mode Mode, x0, eps, probe []T,
	g, omega []float64, labels []int32,
) (*Terms, error) {
	mode, err := m.Resolve(mode)
	if err != nil {
		return nil, err
	}
	n := len(x0) / m.Pixels()
	switch {
	case n == 0 || len(x0) != n*m.Pixels():
		return nil, inputf("x0", "must hold whole images of %d values, got %d values", m.Pixels(), len(x0))
	case len(eps) != len(x0):
		return nil, inputf("eps", "must hold %d values, got %d", len(x0), len(eps))
	case mode.probed() && len(probe) != len(x0):
		return nil, inputf("probe", "must hold %d values, got %d", len(x0), len(probe))
	case labels != nil && len(labels) != n:
		return nil, inputf("labels", "must be one for each of %d images, got %d", n, len(labels))
	case w.refs.Load() <= 0:
		return nil, ErrReleased
	}
	if err := m.checkLevels(n, g, omega); err != nil {
		return nil, err
	}
	batch := Bucket(n)
	s := m.stage()
	defer s.release()
	args, err := s.batchArgs(padded(labels, 1, batch), batch)
	if err != nil {
		return nil, err
	}
	p, err := m.program(ctx, fmt.Sprintf("estimate %s %d", mode, batch), func(gr *graph.Graph) []*Node {
		f := m.frame(gr, batch)
		e := estimator{mode: mode, x0: f.image("x0"), eps: f.image("eps")}
		e.wrapped = f.wrap(f.perSubspace("g"))
		e.omega = f.perSubspace("omega")
		if mode.probed() {
			e.probes = []*Node{f.image("probe")}
		}
		terms, _ := e.build()
		return []*Node{graph.Stack(terms, 0)}
	})
	if err != nil {
		return nil, err
	}
	image := m.imageDims(batch)
	run := append(args.using(w),
		put(s, padded(x0, m.Pixels(), batch), image...),
		put(s, padded(eps, m.Pixels(), batch), image...),
		put(s, padded(g, m.J(), batch), batch, m.J()),
		put(s, padded(omega, m.J(), batch), batch, m.J()))
	if mode.probed() {
		run = append(run, put(s, padded(probe, m.Pixels(), batch), image...))
	}
	out, err := s.run(ctx, p, run...)
	if err != nil {
		return nil, err
	}
	defer releaseAll(out)
	return readTerms(out[0], mode, n, batch, m.J())
}

// Mode names a way to estimate the gradient with respect to the schedule.
type Mode string

// The modes of [Model.Estimate].
const (
	// Auto is Backprop where the network sees all of g, and Full elsewhere.
	Auto Mode = "auto"
	// Full is all five terms, by double reverse mode. The network's dependence on g is covered by the implicit terms, so g
	// is a constant to it.
	Full Mode = "full"
	// Backprop is the explicit terms and ordinary differentiation through every way in which g conditions the network. One
	// reverse pass.
	Backprop Mode = "backprop"
	// Explicit is the explicit terms alone: unbiased only at the optimal network. A diagnostic.
	Explicit Mode = "explicit"
	// LossOnly is |P_j r|² and no derivative: for measuring the loss. It is not among the estimator's modes that a user
	// may name.
	LossOnly Mode = "loss"
)

// Modes lists the names of the estimator's modes.
var Modes = []string{string(Auto), string(Full), string(Backprop), string(Explicit)}

// ParseMode returns the mode of that name; "" is Auto.
func ParseMode(name string) (Mode, error) {
	if name == "" {
		return Auto, nil
	}
	if wrong := suggest.OneOf(name, Modes); wrong != "" {
		return "", inputf("mode", "%s", wrong)
	}
	return Mode(name), nil
}

// probed reports whether a mode needs probes.
func (m Mode) probed() bool { return m == Full }
