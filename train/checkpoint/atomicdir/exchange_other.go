//go:build !linux

package atomicdir

func exchange(a, b string) error { return exchangeByTwo(a, b) }
