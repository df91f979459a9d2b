//go:build !cgo || !linux

package mpi

import (
	"context"
	"errors"
)

// Link is the processes of an MPI job.
type Link struct{}

var errBuild = errors.New("this build cannot load MPI; build on Linux with a C compiler and CGO_ENABLED=1")

// Open answers an error: this build has no MPI.
func Open(string) (*Link, error) { return nil, errBuild }

// Place implements processes.Link.
func (*Link) Place() (rank, size int) { return 0, 1 }

// Exchange implements processes.Link.
func (*Link) Exchange(context.Context, []byte, []byte) error { return errBuild }

// Close does nothing.
func (*Link) Close() error { return nil }

// Abort does nothing.
func (*Link) Abort() {}
