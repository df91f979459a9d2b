package sampler

import (
	"context"
	"errors"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/safely"
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

// A Reducer keeps numbers of trajectories. A new one is a type here, and a class of its kind in the Python client.
type Reducer interface {
	// Begin is called before Add, with the number of values of an image. It may be called again for further rows.
	Begin(size int) Reduction
	// Add is called with the next rows, in order: their states x after a stage and the denoised images D of that stage,
	// [n, H, W, C]. D is nil before the first stage, which is −1, and for samples alone. Add must not keep the slices.
	Add(stage int, x, denoised []float32)
}

// Reduction says what a Reducer needs, and lets a network elsewhere reduce in its place. The fields from Kind to
// Coordinates travel; see Reduction of flight/api.
type Reduction struct {
	EveryStage bool // Add is called for every stage, otherwise for the samples alone
	Fits       bool // plans follow each other that share their first evaluations

	Kind                        string
	States                      *States // that the reducer makes, or compares with
	Every, StateIndex, FirstRow int
	Column, Terms, Split        int
	Coordinates                 *solver.Coordinates // the parts of sums; nil: all values are one part

	// PerRow numbers come back of each row, and Sums numbers of all rows together. Use takes them in place of Add.
	PerRow, Sums int
	Use          func(numbers []float64)
}

// addTo returns a Use that adds rows of samples, or of their features.
func addTo(r Reducer) func(numbers []float64) {
	return func(numbers []float64) {
		x := make([]float32, len(numbers))
		for i, v := range numbers {
			x[i] = float32(v)
		}
		r.Add(0, x, nil)
	}
}

// keepIn returns a Use that keeps sums.
func keepIn(sums *[]float64) func(numbers []float64) {
	return func(numbers []float64) { *sums = numbers }
}

// Moments are a reducer: the moments of the samples' features. There may be several parts, each with a sample for every
// set of features.
type Moments struct {
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

// Begin implements [Reducer].
func (m *Moments) Begin(int) Reduction {
	return Reduction{Kind: "features", PerRow: m.Parts[0][0].Size(), Use: addTo(m)}
}

// Add implements [Reducer].
func (m *Moments) Add(_ int, x, _ []float32) {
	size, features := m.Parts[0][0].Size(), len(m.Parts[0])
	rows := make([][]float32, len(m.Parts))
	for i := range len(x) / size {
		k := m.part(m.rows + i)
		rows[k] = append(rows[k], x[i*size:(i+1)*size]...)
	}
	safely.For(len(rows)*features, func(i int) { m.Parts[i/features][i%features].AddFloat32(rows[i/features]) })
	m.rows += len(x) / size
}

// Samples are a reducer: the samples themselves, [n, H, W, C].
type Samples []float32

// Begin implements [Reducer].
func (s *Samples) Begin(size int) Reduction {
	return Reduction{Kind: "samples", PerRow: size, Use: addTo(s)}
}

// Add implements [Reducer].
func (s *Samples) Add(_ int, x, _ []float32) { *s = append(*s, x...) }

// States are a reducer: the states after each Every-th stage. They stay where the network is.
type States struct {
	Every int
	X     [][]float32 // [n, H, W, C] each; nil if the network is elsewhere
}

// Begin implements [Reducer].
func (s *States) Begin(int) Reduction {
	return Reduction{
		EveryStage: true, Kind: "states", States: s, Every: s.Every, Sums: 1, Use: func([]float64) {},
	}
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
	States    *States
	At, First int
	Squares   []float64 // by row

	size int // of an image
}

// Begin implements [Reducer].
func (e *Errors) Begin(size int) Reduction {
	e.size = size
	r := Reduction{Kind: "error", StateIndex: -1, PerRow: 1, Use: func(numbers []float64) {
		e.Squares = append(e.Squares, numbers...)
	}}
	if e.States != nil {
		r.States, r.StateIndex, r.FirstRow = e.States, e.At, e.First
	}
	return r
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
	h, w, c := e.Shape()
	var everyStage, samplesAlone []Reducer
	reused, same := false, 0
	for _, r := range reducers {
		about := r.Begin(h * w * c)
		if reused = reused || about.Fits; about.EveryStage {
			everyStage = append(everyStage, r)
		} else {
			samplesAlone = append(samplesAlone, r)
		}
	}
	all := len(everyStage) > 0
	if reused {
		same = e.last.replace(t)
	}
	add := func(reducers []Reducer, stage int, x, denoised []float32) {
		for _, r := range reducers {
			r.Add(stage, x, denoised)
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
					add(everyStage, stage, s.States(b), nil)
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
				add(everyStage, stage, x, denoised)
			}
			return nil
		},
		Done: func(b *Batch) error {
			add(samplesAlone, len(t.Plan.Stages)-1, b.Samples, nil)
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
