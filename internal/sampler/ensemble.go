package sampler

import (
	"context"
	"errors"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// ErrLeft is the error of an Ensemble whose network is no longer there. A search then ends with what it has.
var ErrLeft = errors.New("sampler: the network has left")

// Ensemble follows plans with one network, wherever the network is. The plan travels to the network; what comes back
// are sums.
type Ensemble interface {
	// Shape returns the height, width and channels of the network's images.
	Shape() (h, w, c int)
	// Follow takes the latents of t along its plan and adds what the stages leave to reducers.
	Follow(ctx context.Context, t Trajectories, into ...Reducer) error
	// Statistics measures the denoiser by coordinate, on the data that it was made for, at noise variances up to T in the
	// frequencies of a spectrum.
	Statistics(ctx context.Context, T float64, of *gaussian.Spectrum, report func(done, total int),
	) (*local.Statistics, error)
}

// Trajectories are latents of the seeds Seed, Seed + 1, …, each under its label, that follow one plan in one subspace.
type Trajectories struct {
	Plan   *solver.Plan
	Seed   uint64
	Labels []int32      // of each; −1 for none
	Start  *start.Start // whose law they start from; nil: from noise alone
	// From, unless it is nil, has their first states At a stage, in place of latents: Plan.Init is 1, and Start nil.
	From *States
	At   int
	// Progress, which may be nil, takes the number of further evaluations that are done.
	Progress func(evaluations int)
}

// Latent fills in the latent of trajectory i, or its first state.
func (t *Trajectories) Latent(i int, latent []float32) {
	if t.From != nil {
		copy(latent, t.From.X[t.At][i*len(latent):])
		return
	}
	DrawLatent(t.Seed+uint64(i), latent)
}

// A Reducer keeps of trajectories what is asked for. Rows come in their order.
type Reducer interface {
	// EveryStage reports whether Add takes what every stage leaves, or the samples alone.
	EveryStage() bool
	// Add takes what a stage leaves of the next rows: states x and denoised images D, [n, H, W, C]. Before the first
	// stage, −1, and of samples alone D is nil. It keeps neither.
	Add(stage int, x, denoised []float32)
}

// Moments are a reducer: the moments of the samples' features. There may be several parts, each with a sample for every
// set of features: row i goes to part i mod the number of parts.
type Moments struct {
	Of   [][]*frechet.Sample // by part
	rows int
}

// EveryStage implements [Reducer].
func (*Moments) EveryStage() bool { return false }

// Add implements [Reducer].
func (m *Moments) Add(_ int, x, _ []float32) {
	size := m.Of[0][0].Size()
	for k, part := range m.Of {
		own := x
		if n := len(m.Of); n > 1 {
			own = nil
			for i := (k - m.rows%n + n) % n; i < len(x)/size; i += n {
				own = append(own, x[i*size:(i+1)*size]...)
			}
		}
		for _, s := range part {
			s.AddFloat32(own)
		}
	}
	m.rows += len(x) / size
}

// Samples are a reducer: the samples themselves, [n, H, W, C].
type Samples []float32

// EveryStage implements [Reducer].
func (*Samples) EveryStage() bool { return false }

// Add implements [Reducer].
func (s *Samples) Add(_ int, x, _ []float32) { *s = append(*s, x...) }

// States are a reducer: the states that each Every-th stage leaves. They stay where the network is.
type States struct {
	Every int
	X     [][]float32 // [n, H, W, C] each; nil if the network is elsewhere
}

// EveryStage implements [Reducer].
func (*States) EveryStage() bool { return true }

// Add implements [Reducer].
func (s *States) Add(stage int, x, _ []float32) {
	if (stage+1)%s.Every != 0 || stage < 0 {
		return
	}
	i := (stage+1)/s.Every - 1
	for len(s.X) <= i {
		s.X = append(s.X, nil)
	}
	s.X[i] = append(s.X[i], x...)
}

// Errors are a reducer: of each row, the sum of squares by which its sample misses what States hold At the rows from
// First on. Without States it is that of the sample's values.
type Errors struct {
	States    *States
	At, First int
	Squares   []float64

	size int // of an image
}

// EveryStage implements [Reducer].
func (*Errors) EveryStage() bool { return false }

// Add implements [Reducer].
func (e *Errors) Add(_ int, x, _ []float32) {
	for row := range slices.Chunk(x, e.size) {
		var sum float64
		for k, v := range row {
			off := float64(v)
			if e.States != nil {
				off -= float64(e.States.X[e.At][(e.First+len(e.Squares))*e.size+k])
			}
			sum += off * off
		}
		e.Squares = append(e.Squares, sum)
	}
}

// Prepare tells reducers the number of values of an image. Whoever calls Add calls it first.
func Prepare(size int, into []Reducer) {
	for _, r := range into {
		switch r := r.(type) {
		case *Errors:
			r.size = size
		case *Gram:
			r.size = size
		case *Column:
			r.size = size
		}
	}
}

// OnDevice is the Ensemble of a network on the server's devices.
type OnDevice struct {
	Device  Device
	Network Network
	Guide   *Guide        // nil for none
	Data    *data.Dataset // that Statistics measures on; nil if nobody asks

	last lastPlan
}

// Shape implements [Ensemble].
func (e *OnDevice) Shape() (h, w, c int) {
	s := e.Network.Model.Network().Spec()
	return s.Height, s.Width, s.Channels
}

// Follow implements [Ensemble].
func (e *OnDevice) Follow(ctx context.Context, t Trajectories, into ...Reducer) error {
	s := &Sampler{
		Device: e.Device, Network: e.Network, Start: StartOf(t.Start, e.Network.Model.Basis()), Guide: e.Guide,
	}
	all, reused, same := slices.ContainsFunc(into, Reducer.EveryStage), reuses(into), 0
	if reused {
		same = e.last.shared(t)
	}
	h, w, c := e.Shape()
	Prepare(h*w*c, into)
	add := func(every bool, stage int, x, denoised []float32) {
		for _, r := range into {
			if r.EveryStage() == every {
				r.Add(stage, x, denoised)
			}
		}
	}
	source := func(i int, latents []float32) (Row, *solver.Plan, error) {
		r := Row{Index: int64(i), Seed: t.Seed + uint64(i), Label: t.Labels[i]}
		t.Latent(i, latents)
		return r, t.Plan, nil
	}
	return s.Follow(ctx, len(t.Labels), source, Watch{
		Every: all || reused,
		Known: func(b *Batch, stage int) []float32 {
			if stage >= same {
				return nil
			}
			return e.last.denoised[[2]int{int(b.Rows[0].Index), stage}]
		},
		Stage: func(b *Batch, stage int, on *kernels.Trajectory) (err error) {
			if reused && stage >= same && t.Plan.Data {
				at := [2]int{int(b.Rows[0].Index), stage}
				if e.last.denoised[at], err = b.Denoised(on); err != nil {
					return err
				}
			}
			if all {
				x, denoised, err := s.left(b, stage, on)
				if err != nil {
					return err
				}
				add(true, stage, x, denoised)
			}
			if stage >= 0 && t.Progress != nil {
				t.Progress(len(b.Rows))
			}
			return nil
		},
		Done: func(b *Batch) error {
			add(false, len(t.Plan.Stages)-1, b.Samples, nil)
			return nil
		},
	})
}

// left returns what a stage leaves of a batch, as reducers take it.
func (s *Sampler) left(b *Batch, stage int, on *kernels.Trajectory) (x, denoised []float32, err error) {
	if stage < 0 {
		return s.States(b), nil, nil
	}
	if x, err = b.X(on); err != nil {
		return nil, nil, err
	}
	denoised, err = b.Denoised(on)
	return x, denoised, err
}

// Statistics implements [Ensemble].
func (e *OnDevice) Statistics(ctx context.Context, T float64, of *gaussian.Spectrum, report func(done, total int),
) (out *local.Statistics, err error) {
	err = e.Device.Run(ctx, report, func(report func(done, total int)) (err error) {
		out, err = passes.MeasureStatistics(ctx, e.Network.Model, e.Network.Weights, e.Data, passes.GeodesicSettings{
			T: T, Spectrum: of, Progress: report,
		})
		return err
	})
	return out, err
}
