package api

// StatisticsInfo describes the statistics of a denoiser that a schedule carries for the solver local: its mean squared
// errors by noise level, DCT frequency and axis of the channels.
type StatisticsInfo struct {
	Points   int     `json:"points"` // noise levels
	SigmaMin float64 `json:"sigma_min"`
	SigmaMax float64 `json:"sigma_max"`
	Labels   []int32 `json:"labels,omitempty"` // classes with statistics of their own
	Hash     string  `json:"hash"`             // SHA-256 of their file
}

// MaxStatistics bounds the bytes of a file of statistics in one reply.
const MaxStatistics = 64 << 20

// ExportStatistics answers with the statistics of a schedule as their file.
type ExportStatistics struct {
	Schedule ScheduleRef `json:"schedule"`
}

// SetDefaults implements Request.
func (r *ExportStatistics) SetDefaults() { *r = ExportStatistics{} }

// Validate implements Request.
func (r *ExportStatistics) Validate() error { return need("schedule", r.Schedule.Name) }

// StatisticsFile is the reply of ExportStatistics.
type StatisticsFile struct {
	Hash string `json:"hash"` // SHA-256 of the file
	File []byte `json:"file"` // a safetensors file, in base64; docs/wire.md has its tensors
}
