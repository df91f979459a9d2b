//go:build !linux && !darwin

package atomicdir

func lock(string) (unlock func(), err error) { return func() {}, nil }
