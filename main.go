// Command anisoflight trains diffusion models, learns their noise schedules, and
// serves both over Arrow Flight. See `anisoflight --help`.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"strings"

	"github.com/anisoflight/anisoflight/internal/cli"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// version is that of this tree, of the program as of the Python package.
//
//go:embed client_py/anisoflight/VERSION
var version string

func main() {
	command.Release = strings.TrimSpace(version)
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == "doctor") { // doctor reports the allocator of serve
		if err := device.PreloadAllocator(); err != nil && os.Args[1] == "serve" {
			fmt.Fprintln(os.Stderr, "warning: mimalloc is not loaded:", err)
		}
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
