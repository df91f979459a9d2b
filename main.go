// Command anisoflight trains diffusion models, learns their noise schedules, and
// serves both over Arrow Flight. See `anisoflight --help`.
package main

import (
	"os"

	"github.com/anisoflight/anisoflight/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
