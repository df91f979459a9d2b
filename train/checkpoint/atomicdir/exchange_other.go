//go:build !linux && !darwin

package atomicdir

func exchange(a, b string) error { return exchangeByTwo(a, b) }
