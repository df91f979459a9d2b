package command

import (
	"runtime/debug"
)

// version is set by the linker (see the Makefile).
var version string

// Version says which build this is: the linker's word, else the module's version
// or commit as the Go tool recorded it.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "unknown"
}
