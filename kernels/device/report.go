package device

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
)

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
	Devices    []string    // descriptions of the devices that the backend shows; the first is used
	GPU        bool        // the machine has an NVIDIA GPU
	Plugins    bool        // this build can load plugins
	Candidates []Candidate // in the order in which they were considered
}

// Candidate is a plugin file that was considered.
type Candidate struct {
	Path   string
	Source string // where it was found, such as "project .venv"
	Kind   Kind
	Used   bool
	Reason string // why it was not used; empty if it was, and if an earlier one was used before its turn
}

func (r Report) clone() Report {
	r.Devices = slices.Clone(r.Devices)
	r.Candidates = slices.Clone(r.Candidates)
	return r
}

func (d *Device) describe() {
	for i := range d.backend.NumDevices() {
		d.report.Devices = append(d.report.Devices, fmt.Sprint(d.backend.DeviceDescription(backends.DeviceNum(i))))
	}
}
