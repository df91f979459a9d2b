//go:build !cgo || !linux

package mpi

import (
	"errors"

	"github.com/anisoflight/anisoflight/kernels/processes"
)

// Link is the processes of an MPI job, which this build cannot join.
type Link struct{ processes.Link }

// Open answers an error: this build has no MPI.
func Open(string) (*Link, error) {
	return nil, errors.New("this build cannot load MPI; build on Linux with a C compiler and CGO_ENABLED=1")
}

// Close does nothing.
func (*Link) Close() error { return nil }

// Abort does nothing.
func (*Link) Abort() {}
