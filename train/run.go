package train

import (
	"context"
	"errors"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// Sources are what a configuration's names stand for.
type Sources struct {
	Device  *device.Device
	Dataset *data.Dataset

	// Model is what Config.Model names; nil where Config.Network describes a new one.
	Model *checkpoint.Model
	// Schedule is what Config.Schedule names; nil where it names none.
	Schedule *schedule.Schedule
	// Basis is that of Config.Family; nil means none or dct, as the family says.
	Basis *basis.Basis
}

// Run is a training stage under way. It belongs to one goroutine, but for Snapshot.
type Run struct{}

// New checks the configuration against its sources and starts a run at step 0. An
// error in a field is a *[ConfigError].
func New(cfg Config, src Sources) (*Run, error) { return nil, errors.New("train: not ready") }

// Resume starts a run where a state left off; its configuration is the state's. The
// sources must be those that the run was started with, Model and Schedule left out.
func Resume(s *checkpoint.Run, src Sources) (*Run, error) { return nil, errors.New("train: not ready") }

// Config returns the configuration with every default filled in.
func (r *Run) Config() Config { return Config{} }

// Step takes the next batch of the data set through one step.
func (r *Run) Step(ctx context.Context) (Row, error) { return Row{}, errors.New("train: not ready") }

// StepOn takes a caller's batch through one step. The data set's order stays where it
// is.
//
//	images  [B, H, W, C] in [−1, 1]
//	labels  [B], −1 for none; nil for all −1
func (r *Run) StepOn(ctx context.Context, images []float32, labels []int32) (Row, error) {
	return Row{}, errors.New("train: not ready")
}

// Progress returns how far the run is.
func (r *Run) Progress() Progress { return Progress{} }

// Progress is how far a run is.
type Progress struct {
	Step    int64   // steps taken
	Kimg    float64 // thousands of images seen
	Skipped int64   // steps that changed nothing because a gradient was not finite
}

// Rows returns a copy of the rows from the given one on.
func (r *Run) Rows(from int) []Row { return nil }

// Publish makes the present averages and schedule the run's snapshot, for Snapshot.
func (r *Run) Publish(ctx context.Context) error { return errors.New("train: not ready") }

// Snapshot returns what was published last, held for the caller until Release. It may
// be called from any goroutine.
func (r *Run) Snapshot() *Snapshot { return nil }

// Model returns the averaged network with the schedule as it stands, ready for
// checkpoint.SaveModel.
func (r *Run) Model(ctx context.Context) (*checkpoint.Model, error) { return nil, errors.New("train: not ready") }

// State returns a copy of everything that the next step depends on.
func (r *Run) State(ctx context.Context) (*checkpoint.Run, error) { return nil, errors.New("train: not ready") }

// Close frees the device memory. Snapshots held by others stay valid.
func (r *Run) Close() {}
