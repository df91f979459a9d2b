//go:build !cgo || !linux

package shim

import "errors"

// Available says whether this build can load plugins at all.
const Available = false

// Plugin is a plugin in this process.
type Plugin struct {
	Name         string
	Major, Minor int
}

// FromDisk returns 0.
func (*Plugin) FromDisk() int64 { return 0 }

// Rewritten returns 0.
func (*Plugin) Rewritten() int64 { return 0 }

// Lower returns nil.
func (*Plugin) Lower(string, func(string)) []byte { return nil }

// Load answers an error: this build has no plugins.
func Load(string) (*Plugin, error) {
	return nil, errors.New("this build cannot load plugins; build on Linux with a C compiler and CGO_ENABLED=1")
}

// Try answers what Load does.
func Try(path string) error {
	_, err := Load(path)
	return err
}

// Malloc returns nothing.
func Malloc() string { return "" }

// TrimMalloc does nothing in this build.
func TrimMalloc() {}

// TuneMalloc does nothing in this build.
func TuneMalloc() {}
