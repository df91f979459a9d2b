// Package mpi joins processes by MPI, through its standard ABI, which libraries have from MPI 5.0 on (libmpi_abi.so):
// MPICH 5, which `pip install mpich` brings, and others. The library is loaded at run time, and the program is built
// without one.
//
// In a build without cgo, or for another system than Linux, [Open] answers an error. Begin reading with find.go and
// open.go.
package mpi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// libraries are the names of the standard ABI.
var libraries = []string{"libmpi_abi.so.1", "libmpi_abi.so"}

// Advice says where a library comes from.
const Advice = "install MPICH 5 (`pip install mpich`) or another MPI with the standard ABI, libmpi_abi.so; name its " +
	"file with --processes FILE if it is not found beside mpiexec"

// candidates lists the libraries to try: that of the launcher which has started this process, that of the mpiexec on
// the path, that of the Python environment, then what the loader finds.
func candidates() (paths []string) {
	var roots []string
	if launcher, err := os.Readlink("/proc/" + strconv.Itoa(os.Getppid()) + "/exe"); err == nil {
		roots = append(roots, filepath.Dir(filepath.Dir(launcher)))
	}
	if mpiexec, err := exec.LookPath("mpiexec"); err == nil {
		roots = append(roots, filepath.Dir(filepath.Dir(mpiexec)))
	}
	for _, root := range append(roots, os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX")) {
		for _, name := range libraries {
			path := filepath.Join(root, "lib", name)
			if _, err := os.Stat(path); root != "" && err == nil {
				paths = append(paths, path)
			}
		}
	}
	return append(paths, libraries...)
}

// sizes are the variables with the number of processes of a launcher: MPICH's and Intel's mpiexec and Slurm with PMI,
// Open MPI's mpiexec, and srun.
var sizes = []string{"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}

// Launched reports whether a launcher has started this process with others.
func Launched() bool {
	for _, name := range sizes {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 1 {
			return true
		}
	}
	return false
}
