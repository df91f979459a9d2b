package gaussian

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Bench runs a plan of J subspaces on the law and returns its distance. The sampler's
// output is normal, x = A ξ + a, and with Rᵀ R = Σ
//
//	W2² = |a − m|² + tr Σ + tr A Aᵀ − 2 ‖R A‖_*      (the nuclear norm).
//
// Bands hold the distances of each subspace's own marginal law, which add up to less
// than the whole where the output correlates subspaces otherwise than the data does.
// Noise is not computed, and NaN. A plan for another J, or one that churns, is an *Error.
func (s *SplitLaw) Bench(ctx context.Context, p *solver.Plan) (*Report, error) {
	if len(p.Init) != len(s.from)-1 {
		return nil, failf("schedule", "must have the %d subspaces of the basis, got %d", len(s.from)-1, len(p.Init))
	}
	x, err := s.run(ctx, p)
	if err != nil {
		return nil, err
	}
	rep := &Report{}
	for j := range s.roots {
		band, err := s.distance(j, x)
		if err != nil {
			return nil, err
		}
		if j == 0 {
			rep.Distance = band.Distance
		} else {
			rep.Bands = append(rep.Bands, band)
		}
	}
	return rep, nil
}

// run returns what the plan makes of ξ, [A, a] with d columns and one.
func (s *SplitLaw) run(ctx context.Context, p *solver.Plan) (*mat.Dense, error) {
	x, err := s.begin(p)
	if err != nil {
		return nil, err
	}
	var evaluations []*mat.Dense // newest first, as many as the plan looks back at
	for _, stage := range p.Stages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if stage.Noise != nil {
			return nil, failf("S_churn", "must be 0 with the whole covariance")
		}
		e, err := s.evaluate(x, stage.G, p.Data)
		if err != nil {
			return nil, err
		}
		evaluations = append([]*mat.Dense{e}, evaluations[:min(len(evaluations), max(p.History-1, 0))]...)
		s.rows(func(i, j int) {
			to := x.RawRowView(i)
			floats.Scale(stage.Alpha[j], to)
			for k, beta := range stage.Beta[j] {
				floats.AddScaled(to, beta, evaluations[k].RawRowView(i))
			}
		})
	}
	return x, nil
}

// begin returns the state at which the plan starts.
func (s *SplitLaw) begin(p *solver.Plan) (*mat.Dense, error) {
	d := s.mean.Len()
	x := mat.NewDense(d, d+1, nil)
	if s.start == nil {
		s.rows(func(i, j int) { x.Set(i, i, p.Init[j]) })
		return x, nil
	}
	g := make([]float64, len(p.Init))
	for j, v := range p.Init {
		g[j] = v * v
	}
	root, err := s.start.Root(s.basis, s.label, g)
	if err != nil {
		return nil, err
	}
	x.Slice(0, d, 0, d).(*mat.Dense).Mul(s.turn, root.Matrix())
	x.ColView(d).(*mat.VecDense).MulVec(s.turn, mat.NewVecDense(d, s.start.Mean))
	return x, nil
}

// rows calls f for each coordinate i, which lies in subspace j.
func (s *SplitLaw) rows(f func(i, j int)) {
	for j := range len(s.from) - 1 {
		for i := s.from[j]; i < s.from[j+1]; i++ {
			f(i, j)
		}
	}
}

// evaluate returns the flow at x = A ξ + a, −M^½ (Σ + M)^{-1} (x − m), or the denoised
// x − M (Σ + M)^{-1} (x − m).
func (s *SplitLaw) evaluate(x *mat.Dense, g []float64, denoised bool) (*mat.Dense, error) {
	d := s.mean.Len()
	noisy := mat.NewSymDense(d, nil)
	noisy.CopySym(s.cov)
	off := mat.DenseCopyOf(x)
	s.rows(func(i, j int) {
		noisy.SetSym(i, i, noisy.At(i, i)+g[j])
		off.Set(i, d, off.At(i, d)-s.mean.AtVec(i))
	})
	var factor mat.Cholesky
	if !factor.Factorize(noisy) {
		return nil, failf("grid",
			"must end at a higher noise level: the data's covariance and noise of the variances %v have no Cholesky factors", g)
	}
	var e mat.Dense
	if err := factor.SolveTo(&e, off); err != nil && !errors.As(err, new(mat.Condition)) {
		return nil, failf("grid", "must end at a higher noise level: %v at noise of the variances %v", err, g)
	}
	s.rows(func(i, j int) {
		row := e.RawRowView(i)
		if denoised {
			floats.Scale(-g[j], row)
			floats.Add(row, x.RawRowView(i))
		} else {
			floats.Scale(-math.Sqrt(g[j]), row)
		}
	})
	return &e, nil
}

// distance compares x = [A, a] with the law, as a whole (0) or in subspace j − 1.
func (s *SplitLaw) distance(j int, x *mat.Dense) (Band, error) {
	span, d := s.span(j), s.mean.Len()
	own := x.Slice(span[0], span[1], 0, d)
	var product mat.Dense
	product.Mul(s.roots[j], own)
	var svd mat.SVD
	if !svd.Factorize(&product, mat.SVDNone) {
		return Band{}, failf("grid", "must end where the sampler's output has singular values")
	}
	var shift, variance float64
	for i := span[0]; i < span[1]; i++ {
		off := x.At(i, d) - s.mean.AtVec(i)
		shift += off * off
		variance += s.cov.At(i, i)
	}
	norm := mat.Norm(own, 2)
	spread := max(0, variance+norm*norm-2*floats.Sum(svd.Values(nil)))
	return Band{
		Dims: span[1] - span[0], Variance: variance / s.total,
		Distance: Distance{
			W2: (spread + shift) / s.total, Spread: spread / s.total, Shift: shift / s.total,
			Noise: math.NaN(),
		},
	}, nil
}
