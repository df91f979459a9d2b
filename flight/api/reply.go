package api

import (
	"encoding/json"
	"math"
	"time"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
)

// ServerInfo is the reply of the action ServerInfo.
type ServerInfo struct {
	Version        string  `json:"version"`
	Device         Device  `json:"device"`
	Precision      string  `json:"precision"` // of models and runs that name none
	UptimeS        float64 `json:"uptime_s"`
	ActiveRequests int64   `json:"active_requests"` // operations under way, background training apart
	RunningRuns    int     `json:"running_runs"`
	Models         int     `json:"models"`
	Compiled       int64   `json:"compiled"`           // programs compiled since the start
	FromDisk       int64   `json:"programs_from_disk"` // of the compiled ones, read from the cache on disk
	CompileS       float64 `json:"compile_s"`
	Waiting        int     `json:"waiting"`     // requests and runs that wait for a slot of the device
	Turns          uint64  `json:"turns"`       // slots of the device given since the start: evaluations and steps
	TrainSteps     int64   `json:"train_steps"` // of them, training steps
	// evaluations that were made in the batch of another request for the same network
	Joined      uint64 `json:"joined"`
	DeviceBytes int64  `json:"device_bytes"` // in buffers on the devices
	// of each device, in order; absent before they are open
	BytesByDevice []DeviceBytes `json:"bytes_by_device,omitempty"`
	HeapBytes     uint64        `json:"heap_bytes"` // live Go heap
	ResidentBytes uint64        `json:"resident_bytes,omitempty"`

	Work map[string]Work `json:"work"` // by kind of program: evaluate, step, …
	// rate of a large matrix product in that precision, once it is measured
	PeakGFLOPS float64 `json:"peak_gflops,omitempty"`
}

// Work is what the runs of one kind of program have done since the start. Floating-point operations are those of
// convolutions and matrix products, a multiply-add being two.
type Work struct {
	Runs    int64   `json:"runs"`
	GFLOP   float64 `json:"gflop"`         // 10⁹ operations
	Seconds float64 `json:"seconds"`       // runs side by side count each
	GFLOPS  float64 `json:"gflops"`        // GFLOP per second
	MFU     float64 `json:"mfu,omitempty"` // GFLOPS as a share of the peak, once that is measured
}

// DeviceBytes reports the memory of one of the devices in use.
type DeviceBytes struct {
	Buffers   int64 `json:"buffers"`
	Available int64 `json:"available,omitempty"` // that buffers and programs may still take; absent where nobody tells
}

// Device describes what computes.
type Device struct {
	Name    string          `json:"name"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Integrity is what is known of the files of something stored.
type Integrity struct {
	State  string `json:"integrity,omitempty"` // ok, as far as they have been read, or damaged: they cannot be used
	Damage string `json:"damage,omitempty"`    // which file is damaged, and how
}

// The states of an Integrity.
const (
	Intact    = "ok"
	IsDamaged = "damaged"
)

// ModelInfo is what ListModels and DescribeModel say about a model.
type ModelInfo struct {
	Name       string   `json:"name"`
	Version    int      `json:"version"`             // rises when the model is saved anew
	Hash       string   `json:"hash"`                // of its weights
	Type       string   `json:"model_type"`          // SongUNet, DhariwalUNet or Mixture
	Resolution int      `json:"img_resolution"`      // height, and width where none is given
	Width      int      `json:"img_width,omitempty"` // where it is not the height
	Channels   int      `json:"img_channels"`
	LabelDim   int      `json:"label_dim"`
	Classes    []string `json:"classes,omitempty"`
	Parameters int      `json:"parameters"`
	Precision  string   `json:"precision"` // of its network: float32, tf32 or bfloat16
	// how the denoiser is made of the network's output: edm, vp, ve, epsilon, v, x0 or flow; absent for a mixture
	Parametrization string `json:"parametrization,omitempty"`
	// the noise levels that the network was trained on, where it says them
	SigmaMin float64 `json:"sigma_min,omitempty"`
	SigmaMax float64 `json:"sigma_max,omitempty"`
	// what its samples are in, where they are no images in [−1, 1]: the network sees (x − mean)/scale
	Normalization *normalization.Affine `json:"normalization,omitempty"`

	// of a network that is given a condition with each label: how many, and the shape of one
	Conditions *ConditionsInfo `json:"conditions,omitempty"`

	Schedule *ScheduleInfo `json:"schedule,omitempty"` // its own; absent if it samples with edm
	Config   any           `json:"config,omitempty"`   // DescribeModel alone
	// SaveModel alone: why what was learned may be worse than it could be, a line for each reason
	Warning string   `json:"warning,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"` // SaveModel alone: of the run
	Integrity
}

// ConditionsInfo describes a model's table of conditions.
type ConditionsInfo struct {
	Labels int   `json:"labels"` // that have one; 1 where the model has no labels
	None   bool  `json:"none"`   // whether no class, label −1, has one too
	Shape  []int `json:"shape"`
}

// ScheduleInfo describes a schedule.
type ScheduleInfo struct {
	Name     string  `json:"name"`
	Source   string  `json:"source"` // schedule or model
	T        float64 `json:"T"`
	J        int     `json:"J"`
	PerClass bool    `json:"per_class"`
	Basis    string  `json:"basis"`
	K        int     `json:"k,omitempty"`
	Cuts     []int   `json:"cuts,omitempty"`
	Labels   []int32 `json:"labels,omitempty"`
	// Provenance reports how the schedule was made, where that is known: a schedule.Provenance.
	Provenance any `json:"provenance,omitempty"`
	// Energies reports what MakeSchedule knows about a geodesic, by row.
	Energies []Energy `json:"energies,omitempty"`
	// Bench reports what MakeSchedule knows about a gaussian schedule.
	Bench *Bench `json:"bench,omitempty"`
	// Sampler is the solver that the schedule was made for; absent where it serves any.
	Sampler *ScheduleSampler `json:"sampler,omitempty"`
	// Few reports what was tried for a schedule of kind few.
	Few *Few `json:"few,omitempty"`
	// Start describes the law of the data that sampling starts from; absent for noise alone.
	Start *StartInfo `json:"start,omitempty"`
	// Fit reports what fitted coefficients have gained.
	Fit *Fit `json:"fit,omitempty"`
	// Statistics describe those of a denoiser that the schedule carries for the solver local; absent for none.
	Statistics *StatisticsInfo `json:"statistics,omitempty"`
	Integrity
	// Summary says in a sentence what the schedule is worth against what would be taken without it, and by what that was
	// judged; absent where nobody judged it.
	Summary string `json:"summary,omitempty"`
}

// Compare says how something compares with another by a ratio of their errors, which chance may move so far from 1.
func Compare(ratio, chance float64) string {
	switch {
	case math.Abs(ratio-1) <= chance:
		return "about the same as"
	case ratio < 1:
		return "better than"
	}
	return "worse than"
}

// ScheduleSampler is the sampler that a schedule was made for: Sample takes its solver where the request names none.
type ScheduleSampler struct {
	Solver string `json:"solver"`
	Order  int    `json:"order,omitempty"`
	NFE    int    `json:"nfe"`
}

// Energy is the path energy E = T²·mean loss of one row of a schedule, and the least that any schedule can have.
type Energy struct {
	Energy      float64 `json:"energy"`
	Stderr      float64 `json:"stderr"`
	Bound       float64 `json:"bound"`
	BoundStderr float64 `json:"bound_stderr"`
}

// Bench compares a solver on the noise levels chosen for it with the same solver, within as many evaluations, on EDM's:
// the schedule edm of the same T and grid edm, ρ = 7. Distances are squared 2-Wasserstein distances to the data's own
// Gaussian, over the data's total variance; they are exact.
type Bench struct {
	Solver   string       `json:"solver"`
	Nodes    BenchSampler `json:"nodes"`
	Baseline BenchSampler `json:"baseline"`
	Bands    []BenchBand  `json:"bands"` // by subspace; their distances add up to the samplers'
}

// BenchSampler is one of the samplers that a Bench compares.
type BenchSampler struct {
	Grid  string  `json:"grid,omitempty"` // of the baseline
	Steps int     `json:"steps"`
	NFE   int     `json:"nfe"`
	W2    float64 `json:"w2_squared"`
}

// BenchBand is the part of a Bench that belongs to one subspace.
type BenchBand struct {
	Dims     int     `json:"dims"`     // of all channels
	Variance float64 `json:"variance"` // share of the data's
	Nodes    float64 `json:"nodes"`    // w2_squared
	Baseline float64 `json:"baseline"`
}

// BasisInfo describes a stored basis.
type BasisInfo struct {
	Name     string `json:"name"`
	Height   int    `json:"height"`
	Width    int    `json:"width"`
	K        int    `json:"k"`
	PerClass bool   `json:"per_class"`
	// Spans reports what MakeBasis knows about principal components, one for each set of them.
	Spans []BasisSpan `json:"spans,omitempty"`
	Integrity
}

// BasisSpan reports which images principal components were taken of.
type BasisSpan struct {
	Labels []int   `json:"labels"` // classes that share them; −1 alone for all images
	Images int64   `json:"images"`
	Share  float64 `json:"share"` // of the images' variance, in the mean over the channels, that lies in P_1
}

// DatasetInfo describes a data set.
type DatasetInfo struct {
	Name    string `json:"name"`
	Rows    int    `json:"rows"`
	Shape   []int  `json:"shape"` // of one image, in the layout uploaded
	Layout  string `json:"layout"`
	DType   string `json:"dtype"`
	Classes int    `json:"classes"` // one more than the largest label; 0 without labels
	Hash    string `json:"hash"`    // SHA-256 of images, labels and normalization
	// of floats in units of their own: a network sees (x − mean)/scale
	Normalization *normalization.Affine `json:"normalization,omitempty"`
	Integrity
}

// RunInfo describes a run.
type RunInfo struct {
	Name    string         `json:"name"`
	State   string         `json:"state"` // created running paused done cancelled failed broken
	Stage   string         `json:"stage"`
	Dataset string         `json:"dataset"`
	Step    int64          `json:"step"`
	Kimg    float64        `json:"kimg"`
	Target  float64        `json:"target_kimg,omitempty"` // of a run in the background
	Error   string         `json:"error,omitempty"`
	Stopped *Stopped       `json:"stopped,omitempty"` // the last time that it stopped of its own
	Last    map[string]any `json:"last,omitempty"`    // the columns of its last row that are finite
	Created time.Time      `json:"created"`
	Memory  *RunMemory     `json:"memory,omitempty"` // as it was found when the run was opened last
	// Parameters is the number of trained scalars of the network; absent in runs that older servers made.
	Parameters int `json:"parameters,omitempty"`
	// Seconds is an estimate of what the whole length takes, of a run that starts from a model: its operations at two
	// fifths of the device's peak.
	Seconds float64 `json:"seconds,omitempty"`
	// StepSeconds is the median of the last steps, without the first one, which waits for the compiler.
	StepSeconds float64 `json:"step_seconds,omitempty"`

	Config json.RawMessage `json:"config,omitempty"` // GetRun alone

	StoredStep int64  `json:"stored_step"`           // the step whose state is on the disk
	StoreError string `json:"store_error,omitempty"` // why the last attempt to store failed; it is repeated
	Integrity
	Restored string `json:"restored,omitempty"` // that its last state was damaged, and from where it went on

	Notes []string `json:"notes,omitempty"` // sentences on what gives poor results

	Outcome *Outcome `json:"outcome,omitempty"` // of a run that keeps its best state
}

// Outcome reports what the state that a run keeps has gained over the run's start. Both were measured on the same
// draws, which training does not see.
type Outcome struct {
	Step int64   `json:"step"` // of the state that is kept; 0 is the start
	Kimg float64 `json:"kimg"`
	// OnStart says that the network of Step is kept with the path of the start, along which its samples are better.
	OnStart bool   `json:"on_start,omitempty"`
	Energy  *Ratio `json:"energy,omitempty"`  // of the energies, each along its own path; absent if OnStart
	NFE     int    `json:"nfe,omitempty"`     // evaluations of Heun's method for each sample
	Samples *Ratio `json:"samples,omitempty"` // of the Fréchet distances of samples
	Summary string `json:"summary"`           // these ratios and how the paths moved, in a sentence
}

// Ratio is a measure over that of the start, with the standard error over parts of the draws.
type Ratio struct {
	Value  float64 `json:"value"`
	Stderr float64 `json:"stderr"`
}

// RunMemory reports how a run's steps fit the memory of the device.
type RunMemory struct {
	Devices        int   `json:"devices,omitempty"`         // that take parts of a batch; absent in older runs
	Microbatch     int   `json:"microbatch"`                // images of a batch on a device at a time
	NeededBytes    int64 `json:"needed_bytes"`              // for that, an estimate
	WholeBytes     int64 `json:"whole_bytes,omitempty"`     // for the whole batch at a time, where that did not fit
	AvailableBytes int64 `json:"available_bytes,omitempty"` // absent where nobody tells
}

// Stopped reports why a run stopped before it had seen what it was to see.
type Stopped struct {
	Reason  string `json:"reason"` // diverged
	Step    int64  `json:"step"`
	Message string `json:"message"`
}

// Flight is one entry of ListFlights.
type Flight struct {
	Path    []string // such as ["models","digits"]
	Schema  Schema   // of what reading it gives
	Records int64    // −1 unknown
	Bytes   int64    // −1 unknown
	Ticket  []byte   // the JSON of a DoGet that reads it
	Err     error    // why it cannot be read
}
