package atomicdir

import "os"

// exchangeByTwo swaps a for b by way of a third name: for a moment there is nothing at b.
func exchangeByTwo(a, b string) error {
	old := a + ".old"
	if err := os.Rename(b, old); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		if back := os.Rename(old, b); back != nil {
			return back
		}
		return err
	}
	return os.Rename(old, a)
}
