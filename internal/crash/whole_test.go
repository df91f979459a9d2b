//go:build crash

package crash

// all is whether every storing operation is tried.
const all = true
