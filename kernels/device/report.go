package device

// Kind is what a plugin computes on.
type Kind string

// The kinds of plugins.
const (
	CPU  Kind = "cpu"
	CUDA Kind = "cuda"
)

// Report tells which backend was opened and what became of every candidate.
type Report struct {
	Name       string      // "xla:cpu", "xla:cuda" or "go"
	Plugin     string      // the plugin's path; empty for the pure-Go backend
	APIVersion string      // the plugin's PJRT API, such as "0.106"
	Devices    []string    // descriptions of the devices that the backend sees
	GPU        bool        // an NVIDIA GPU is present
	Plugins    bool        // this build can load plugins
	Candidates []Candidate // in the order in which they were tried
}

// Candidate is a plugin file that was considered.
type Candidate struct {
	Path   string
	Source string // where it was found
	Kind   Kind
	Used   bool
	Reason string // why it was not used; empty if it was
}
