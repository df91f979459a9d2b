package sampler

import (
	"context"
	"errors"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
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

// Ensemble follows plans with one network, wherever it is. Plans travel to the network, and sums come back.
type Ensemble interface {
	// Shape returns the height, width and channels of the network's images.
	Shape() (h, w, c int)
	// Follow samples t and passes what its stages leave to the reducers.
	Follow(ctx context.Context, t Trajectories, reducers ...Reducer) error
	// Statistics measures the denoiser by coordinate of a spectrum, on the data that it was made for, at noise variances
	// up to T.
	Statistics(ctx context.Context, T float64, s *gaussian.Spectrum, report func(done, total int),
	) (*local.Statistics, error)
}

// Trajectories are latents of the seeds Seed, Seed + 1, …, each under its label, that follow one plan in one subspace.
type Trajectories struct {
	Plan   *solver.Plan
	Seed   uint64
	Labels []int32      // of each; −1 for none
	Start  *start.Start // whose law they start from; nil: from noise alone
	// From.X[At], unless From is nil, are the initial states in place of latents. Plan.Init is then 1, and Start nil.
	From *States
	At   int
	// Progress, which may be nil, is called with the number of evaluations done since the last call.
	Progress func(evaluations int)
}

// Latent writes the latent of trajectory i, or its initial state, to latent [H·W·C].
func (t *Trajectories) Latent(i int, latent []float32) {
	if t.From != nil {
		copy(latent, t.From.X[t.At][i*len(latent):])
		return
	}
	DrawLatent(t.Seed+uint64(i), latent)
}

// A Reducer keeps numbers of trajectories.
type Reducer interface {
	// EveryStage reports whether Add is called for every stage, or for the samples alone.
	EveryStage() bool
	// Add is called with the next rows, in order: their states x after a stage and the denoised images D of that stage,
	// [n, H, W, C]. D is nil before the first stage, which is −1, and for samples alone. Add must not keep the slices.
	Add(stage int, x, denoised []float32)
}

// everyStage and samplesAlone are what reducers see.
type (
	everyStage   struct{}
	samplesAlone struct{}
)

// EveryStage implements [Reducer].
func (everyStage) EveryStage() bool { return true }

// EveryStage implements [Reducer].
func (samplesAlone) EveryStage() bool { return false }

// Moments are a reducer: the moments of the samples' features. There may be several parts, each with a sample for every
// set of features.
type Moments struct {
	samplesAlone
	Parts [][]*frechet.Sample
	// Random sends each row to a part drawn at random. Otherwise row i goes to part i mod the number of parts.
	Random bool
	rows   int
}

// streamParts draws the parts of Moments.
const streamParts = 0x70617274

// part returns the part of a row.
func (m *Moments) part(row int) int {
	n := len(m.Parts)
	if m.Random {
		return int(latent.Uint64(0, streamParts, uint64(row)) % uint64(n))
	}
	return row % n
}

// Add implements [Reducer].
func (m *Moments) Add(_ int, x, _ []float32) {
	size := m.Parts[0][0].Size()
	for k, part := range m.Parts {
		rows := x
		if len(m.Parts) > 1 {
			rows = nil
			for i := range len(x) / size {
				if m.part(m.rows+i) == k {
					rows = append(rows, x[i*size:(i+1)*size]...)
				}
			}
		}
		for _, s := range part {
			s.AddFloat32(rows)
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

// States are a reducer: the states after each Every-th stage. They stay where the network is.
type States struct {
	everyStage
	Every int
	X     [][]float32 // [n, H, W, C] each; nil if the network is elsewhere
}

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

// Errors are a reducer: the sums of squares of each row's sample minus States.X[At], whose rows begin at First, or of
// the sample itself if States is nil.
type Errors struct {
	samplesAlone
	States    *States
	At, First int
	Squares   []float64 // by row

	size int // of an image
}

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

// Prepare sets the number of values of an image in reducers. It must be called before Add.
func Prepare(size int, reducers []Reducer) {
	for _, r := range reducers {
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
	Data    *data.Dataset // for Statistics; may be nil if it is not called

	last lastPlan
}

// Shape implements [Ensemble].
func (e *OnDevice) Shape() (h, w, c int) {
	s := e.Network.Model.Network().Spec()
	return s.Height, s.Width, s.Channels
}

// Follow implements [Ensemble].
func (e *OnDevice) Follow(ctx context.Context, t Trajectories, reducers ...Reducer) error {
	s := &Sampler{
		Device: e.Device, Network: e.Network, Start: StartOf(t.Start, e.Network.Model.Basis()), Guide: e.Guide,
	}
	all, reused, same := slices.ContainsFunc(reducers, Reducer.EveryStage), reuses(reducers), 0
	if reused {
		same = e.last.replace(t)
	}
	h, w, c := e.Shape()
	Prepare(h*w*c, reducers)
	add := func(every bool, stage int, x, denoised []float32) {
		for _, r := range reducers {
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
		Every:     all || reused,
		Evaluated: t.Progress,
		Known: func(b *Batch, stage int) []float32 {
			if stage >= same {
				return nil
			}
			return e.last.denoised[[2]int{int(b.Rows[0].Index), stage}]
		},
		Stage: func(b *Batch, stage int, states *kernels.Trajectory) (err error) {
			if reused && stage >= same && t.Plan.Data {
				at := [2]int{int(b.Rows[0].Index), stage}
				if e.last.denoised[at], err = b.Denoised(states); err != nil {
					return err
				}
			}
			if all {
				if stage < 0 {
					add(true, stage, s.States(b), nil)
					return nil
				}
				x, err := b.X(states)
				if err != nil {
					return err
				}
				denoised, err := b.Denoised(states)
				if err != nil {
					return err
				}
				add(true, stage, x, denoised)
			}
			return nil
		},
		Done: func(b *Batch) error {
			add(false, len(t.Plan.Stages)-1, b.Samples, nil)
			return nil
		},
	})
}

// Statistics implements [Ensemble].
func (e *OnDevice) Statistics(ctx context.Context, T float64, s *gaussian.Spectrum, report func(done, total int),
) (out *local.Statistics, err error) {
	err = e.Device.Run(ctx, report, func(report func(done, total int)) (err error) {
		out, err = passes.MeasureStatistics(ctx, e.Network.Model, e.Network.Weights, e.Data, passes.GeodesicSettings{
			T: T, Spectrum: s, Progress: report,
		})
		return err
	})
	return out, err
}
