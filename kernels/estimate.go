package kernels

import (
	"cmp"
	"context"

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
	n, err := m.checkImages("x0", len(x0), labels)
	if err != nil {
		return nil, err
	}
	noise := [][]T{eps}
	if mode.probed() {
		noise = append(noise, probe)
	}
	for i, x := range noise {
		if err := checkLength([]string{"eps", "probe"}[i], len(x), len(x0)); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(m.checkLevels("g", n, g), m.checkWeights(n, omega), w.usable()); err != nil {
		return nil, err
	}
	batch := Bucket(n)
	p, err := m.partProgram(ctx, job{mode: mode, probes: len(noise) - 1}, batch)
	if err != nil {
		return nil, err
	}
	s := m.stage()
	defer s.release()
	args, err := s.batchArgs(labels, batch)
	if err != nil {
		return nil, err
	}
	image := m.imageDims(batch)
	run := append(args.withParams(w.flat, device.Use),
		put(s, padded(x0, m.Pixels(), batch), image...),
		put(s, padded(g, m.J(), batch), batch, m.J()),
		put(s, padded(omega, m.J(), batch), batch, m.J()))
	for _, x := range noise {
		run = append(run, put(s, padded(x, m.Pixels(), batch), image...))
	}
	out, err := s.run(ctx, p, run...)
	if err != nil {
		return nil, err
	}
	defer releaseAll(out)
	terms := newTerms(mode, n, m.J())
	return terms, terms.read(out[0], 0, n)
}

// Mode names a way to estimate the gradient with respect to the schedule.
type Mode string

// The modes of [Model.Estimate].
const (
	// Auto is Backprop if the network sees all of g, else Full.
	Auto Mode = "auto"
	// Full computes all five terms, by double reverse mode. The implicit terms cover the network's dependence on g.
	Full Mode = "full"
	// Backprop computes the explicit terms and differentiates through the conditioning of the network by g, in one
	// reverse pass.
	Backprop Mode = "backprop"
	// Explicit computes the explicit terms alone, which are unbiased only for the optimal network. A diagnostic.
	Explicit Mode = "explicit"
	// LossOnly computes |P_j r|² and no derivative. It is not a mode that users can choose.
	LossOnly Mode = "loss"
)

// Modes lists the modes that users can choose.
var Modes = []string{string(Auto), string(Full), string(Backprop), string(Explicit)}

// ParseMode returns the mode of that name; "" is Auto.
func ParseMode(name string) (Mode, error) { return parse("mode", Mode(name), Auto, Modes) }

// probed reports whether a mode needs probes.
func (m Mode) probed() bool { return m == Full }
