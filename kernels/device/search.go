package device

import (
	"os"
	"path/filepath"
)

func search(cfg Config) []Candidate {
	var out []Candidate
	dir, _ := os.Getwd()
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		found, _ := filepath.Glob(filepath.Join(dir, ".venv/lib/python3*/site-packages/fastatomstruct_xla_cpu/libpjrt_cpu.so"))
		for _, f := range found {
			out = append(out, Candidate{Path: f, Source: ".venv", Kind: CPU})
		}
	}
	return out
}
