// Command anisoflight-bench measures what the project costs on this machine. See `anisoflight-bench --help`.
package main

import (
	"os"

	"github.com/anisoflight/anisoflight/bench"
)

func main() {
	os.Exit(bench.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
