package kernels

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/subspace"
)

// combine is the program x' = Σ_j P_j(α_j x + Σ_i β_ji E_i) with h evaluations.
// Where fewer have been made, their coefficients are zero and x stands in.
func (m *Model) combine(ctx context.Context, args *batchArgs, batch, h int, x *device.Buffer, history []*device.Buffer,
	alpha, beta []float64,
) (*device.Buffer, error) {
	p, err := m.combineProgram(ctx, batch, h)
	if err != nil {
		return nil, err
	}
	s := m.stage()
	defer s.release()
	run := append(args.basis(), device.Use(x), put(s, coefficients(alpha, beta, batch, m.J(), h), batch, m.J()*(h+1)))
	if s.err != nil {
		return nil, s.err
	}
	out, err := p.Run(ctx, withHistory(run, history, h, x)...)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// withHistory appends h parts of a history to the arguments of a program; x stands in for those not made yet.
func withHistory(args []device.Arg, history []*device.Buffer, h int, x *device.Buffer) []device.Arg {
	for i := range h {
		part := x
		if i < len(history) {
			part = history[i]
		}
		args = append(args, device.Use(part))
	}
	return args
}

// combineProgram is the program of combine.
func (m *Model) combineProgram(ctx context.Context, batch, h int) (*device.Program, error) {
	key := fmt.Sprintf("combine %d×%d|%s", batch, h, m.key)
	return m.dev.Program(ctx, key, func(g *graph.Graph) []*Node {
		f := m.basisFrame(g, batch)
		state := f.image("x")
		weights := f.param("coefficients", batch, m.J()*(h+1))
		c := subspace.Columns(weights)
		terms := []subspace.Term{subspace.Scaled(c[:m.J()], state)}
		for i := range h {
			terms = append(terms, subspace.Scaled(c[(i+1)*m.J():(i+2)*m.J()], f.image(fmt.Sprint("e", i))))
		}
		return []*Node{f.sub.Mix(terms...)}
	})
}

// coefficients interleaves α [B, J] and β [B, J, h] to rows α_1 … α_J, β_10 … β_J0, β_11 …
func coefficients(alpha, beta []float64, batch, j, h int) []float64 {
	out := make([]float64, 0, batch*j*(h+1))
	for b := range batch {
		out = append(out, alpha[b*j:(b+1)*j]...)
		for i := range h {
			for k := range j {
				out = append(out, beta[(b*j+k)*h+i])
			}
		}
	}
	return out
}
