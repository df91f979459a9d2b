// Package mpi joins processes by MPI, through its standard ABI, which libraries have from MPI 5.0 on (libmpi_abi.so):
// MPICH 5, which `pip install mpich` brings, and others. The library is loaded at run time, and the program is built
// without one.
//
// In a build without cgo, or for another system than Linux, [Open] answers an error. Begin reading with find.go and
// open.go.
package mpi
