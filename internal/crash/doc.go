// Package crash holds tests alone: it kills a process at every effect that a storing operation has on the disk, fills
// the disk at each of them, makes it read-only, and looks at what is there afterwards.
//
// What it wants is what docs/durability.md promises: what was acknowledged is there, what was not is there whole or not
// at all, nothing else has changed, and nothing lies about. `go test` does it for one operation of each kind of thing
// that is stored, `make test-crash` (-args -all) for every storing operation, and kills a real server under clients.
//
// Begin reading with operations_test.go.
package crash
