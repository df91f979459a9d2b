// Package alloctest measures in tests what code costs in memory, whatever the machine.
package alloctest

import "runtime"

// Bytes returns the bytes that f allocates in all, freed ones and those of goroutines beside it included.
func Bytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
