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
	Precision      string  `json:"precision"` // default precision of models and runs
	UptimeS        float64 `json:"uptime_s"`
	ActiveRequests int64   `json:"active_requests"` // without background training
	RunningRuns    int     `json:"running_runs"`
	Models         int     `json:"models"`
	Compiled       int64   `json:"compiled"`           // programs compiled since the start
	FromDisk       int64   `json:"programs_from_disk"` // compiled programs that were read from the cache on disk
	CompileS       float64 `json:"compile_s"`
	Waiting        int     `json:"waiting"`     // requests and runs that wait for a device
	Turns          uint64  `json:"turns"`       // evaluations and steps since the start
	TrainSteps     int64   `json:"train_steps"` // training steps since the start
	// evaluations that were made in the batch of another request for the same network
	Joined      uint64 `json:"joined"`
	DeviceBytes int64  `json:"device_bytes"` // in buffers on the devices
	// memory of each device, in order; absent before the devices are open
	BytesByDevice []DeviceBytes `json:"bytes_by_device,omitempty"`
	HeapBytes     uint64        `json:"heap_bytes"` // live heap of Go
	ResidentBytes uint64        `json:"resident_bytes,omitempty"`

	Work map[string]Work `json:"work"` // by kind of program: evaluate, step, …
	// rate of a large matrix product in that precision; absent until it is measured
	PeakGFLOPS float64 `json:"peak_gflops,omitempty"`
}

// Work counts what the programs of one kind have done since the start. Floating-point operations are those of
// convolutions and matrix products; a multiply-add counts as two.
type Work struct {
	Runs    int64   `json:"runs"`
	GFLOP   float64 `json:"gflop"`         // 10⁹ operations
	Seconds float64 `json:"seconds"`       // sum over runs, also simultaneous ones
	GFLOPS  float64 `json:"gflops"`        // GFLOP per second
	MFU     float64 `json:"mfu,omitempty"` // GFLOPS over the measured peak; absent without one
}

// DeviceBytes reports the memory of one device.
type DeviceBytes struct {
	Buffers   int64 `json:"buffers"`
	Available int64 `json:"available,omitempty"` // left for buffers and programs; absent if not known
}

// Device describes the device.
type Device struct {
	Name    string          `json:"name"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Integrity is the known state of stored files.
type Integrity struct {
	State  string `json:"integrity,omitempty"` // ok, as far as they have been read, or damaged
	Damage string `json:"damage,omitempty"`    // which file is damaged, and how
}

// The states of an Integrity.
const (
	Intact    = "ok"
	IsDamaged = "damaged"
)

// ModelInfo describes a model.
type ModelInfo struct {
	Name       string   `json:"name"`
	Version    int      `json:"version"`             // increases when the model is saved again
	Hash       string   `json:"hash"`                // of its weights
	Type       string   `json:"model_type"`          // SongUNet, DhariwalUNet or Mixture
	Resolution int      `json:"img_resolution"`      // height; also the width if Width is 0
	Width      int      `json:"img_width,omitempty"` // if it differs from the height
	Channels   int      `json:"img_channels"`
	LabelDim   int      `json:"label_dim"`
	Classes    []string `json:"classes,omitempty"`
	Parameters int      `json:"parameters"`
	Precision  string   `json:"precision"` // of its network: float32, tf32 or bfloat16
	// meaning of the network's output: edm, vp, ve, epsilon, v, x0 or flow; absent for a mixture
	Parametrization string `json:"parametrization,omitempty"`
	// noise levels that the network was trained on, if it has them
	SigmaMin float64 `json:"sigma_min,omitempty"`
	SigmaMax float64 `json:"sigma_max,omitempty"`
	// of samples in their own units: the network sees (x − mean)/scale
	Normalization *normalization.Affine `json:"normalization,omitempty"`

	// of a network that is given a condition with each label
	Conditions *ConditionsInfo `json:"conditions,omitempty"`

	Schedule *ScheduleInfo `json:"schedule,omitempty"` // absent if it samples with edm
	Config   any           `json:"config,omitempty"`   // DescribeModel alone
	// SaveModel alone: reasons why the model may be worse than it could be, one per line: a quarter or more of the average
	// is still the network at the start; the learning rate is still above half of its highest, because the run was stopped
	// early; or the schedule's gradient was never larger than its standard error
	Warning string   `json:"warning,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"` // SaveModel alone: outcome of the run
	Integrity
}

// ConditionsInfo describes a model's table of conditions.
type ConditionsInfo struct {
	Labels int   `json:"labels"` // number of labels with a condition; 1 if the model has no labels
	None   bool  `json:"none"`   // whether label −1, no class, has one too
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
	// Provenance is the schedule.Provenance, if there is one.
	Provenance any `json:"provenance,omitempty"`
	// Energies are those of a geodesic's rows, in replies of MakeSchedule.
	Energies []Energy `json:"energies,omitempty"`
	// Start describes the law that sampling starts from; absent for noise.
	Start *StartInfo `json:"start,omitempty"`
	Integrity
	// Summary compares the schedule, in a sentence, with what would be used without it, and says how that was measured. It
	// is absent if nothing was measured.
	Summary string `json:"summary,omitempty"`
}

// Compare returns the words that compare two errors by their ratio, which chance may move from 1 by up to chance.
func Compare(ratio, chance float64) string {
	switch {
	case math.Abs(ratio-1) <= chance:
		return "about the same as"
	case ratio < 1:
		return "better than"
	}
	return "worse than"
}

// Energy is the path energy E = T²·mean loss of one row of a schedule, and the bound below which none can be.
type Energy struct {
	Energy      float64 `json:"energy"`
	Stderr      float64 `json:"stderr"`
	Bound       float64 `json:"bound"`
	BoundStderr float64 `json:"bound_stderr"`
}

// BasisInfo describes a stored basis.
type BasisInfo struct {
	Name     string `json:"name"`
	Height   int    `json:"height"`
	Width    int    `json:"width"`
	K        int    `json:"k"`
	PerClass bool   `json:"per_class"`
	// Spans describe the sets of principal components, in replies of MakeBasis.
	Spans []BasisSpan `json:"spans,omitempty"`
	Integrity
}

// BasisSpan describes a set of principal components.
type BasisSpan struct {
	Labels []int   `json:"labels"` // classes that share them; −1 for all images
	Images int64   `json:"images"`
	Share  float64 `json:"share"` // share of the variance in P_1, of the mean over the channels
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
	// of floats in their own units: a network sees (x − mean)/scale
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
	Target  float64        `json:"target_kimg,omitempty"` // of a background run
	Error   string         `json:"error,omitempty"`
	Stopped *Stopped       `json:"stopped,omitempty"` // the last time that it stopped itself, by diverging
	Last    map[string]any `json:"last,omitempty"`    // the finite columns of its last row
	Created time.Time      `json:"created"`
	Memory  *RunMemory     `json:"memory,omitempty"` // when the run was last opened
	// Parameters is the number of parameters of the network; absent in runs of older servers.
	Parameters int `json:"parameters,omitempty"`
	// Seconds estimates the duration of a whole run from a model: its operations at two fifths of the device's peak.
	Seconds float64 `json:"seconds,omitempty"`
	// StepSeconds is the median duration of the last steps, without the first one, which waits for the compiler.
	StepSeconds float64 `json:"step_seconds,omitempty"`

	Config json.RawMessage `json:"config,omitempty"` // GetRun alone

	StoredStep int64  `json:"stored_step"`           // step of the stored state
	StoreError string `json:"store_error,omitempty"` // why the last store failed; it is retried
	Integrity
	Restored string `json:"restored,omitempty"` // says which state the run continued from if its last one was damaged

	Notes []string `json:"notes,omitempty"` // sentences about what gives poor results

	Outcome *Outcome `json:"outcome,omitempty"` // of a run that keeps its best state
}

// Outcome compares the state that a run keeps with the run's start. Both are measured on the same draws, which training
// does not see.
type Outcome struct {
	Step int64   `json:"step"` // of the kept state; 0 is the start
	Kimg float64 `json:"kimg"`
	// OnStart is true if the network of Step is kept with the path of the start, along which its samples are better.
	OnStart bool   `json:"on_start,omitempty"`
	Energy  *Ratio `json:"energy,omitempty"`  // of the energies, each along its own path; absent if OnStart
	NFE     int    `json:"nfe,omitempty"`     // evaluations of Heun's method for each sample
	Samples *Ratio `json:"samples,omitempty"` // of the Fréchet distances of samples
	Summary string `json:"summary"`           // these ratios and how the paths moved, in a sentence
}

// Ratio is a measurement over that of the start, with its standard error.
type Ratio struct {
	Value  float64 `json:"value"`
	Stderr float64 `json:"stderr"`
}

// RunMemory reports how a run's steps fit the memory of the device. A batch that does not fit is split into the fewest
// equal parts that fit, unless the run has microbatch.
type RunMemory struct {
	Devices        int   `json:"devices,omitempty"`         // number of devices that share a batch; absent in older runs
	Microbatch     int   `json:"microbatch"`                // images on a device at a time
	NeededBytes    int64 `json:"needed_bytes"`              // estimate for Microbatch
	WholeBytes     int64 `json:"whole_bytes,omitempty"`     // estimate for the whole batch, if that does not fit
	AvailableBytes int64 `json:"available_bytes,omitempty"` // absent if not known
}

// Stopped reports why a run stopped itself before its end. A background run is then paused; TrainStep continues, with
// the message as "warning" of its metadata.
type Stopped struct {
	Reason  string `json:"reason"` // diverged
	Step    int64  `json:"step"`
	Message string `json:"message"`
}

// Flight is one entry of ListFlights.
type Flight struct {
	Path    []string // such as ["models","digits"]
	Schema  Schema   // of its rows
	Records int64    // −1 unknown
	Bytes   int64    // −1 unknown
	Ticket  []byte   // the JSON of a DoGet that reads it
	Err     error    // why it cannot be read
}
