// Command anisoflight-bench measures what the project costs on this machine. See `anisoflight-bench --help`.
package main

import (
	"fmt"
	"os"

	"github.com/anisoflight/anisoflight/kernels/device"

	"github.com/anisoflight/anisoflight/bench"
)

func main() {
	if err := device.PreloadAllocator(); err != nil {
		fmt.Fprintln(os.Stderr, "warning: mimalloc is not loaded:", err)
	}
	os.Exit(bench.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
