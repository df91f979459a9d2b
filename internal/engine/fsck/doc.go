// Package fsck checks everything that lies in a data folder, and repairs what can be repaired without a loss.
//
// Checking reads every byte and changes nothing: it may be done beside a server, since what is committed is replaced as
// a whole and never changed. Repairing needs the folder's lock. It removes what crashes have left, writes the manifests
// of what was stored without one, puts a run's previous state in the place of a damaged one, which it keeps aside, and
// makes a damaged status anew.
// It says so of each, and deletes nothing that has a name.
//
// The package imports internal/engine/catalog, for the places of things, and train/..., which reads them. Begin at
// Check.
package fsck
