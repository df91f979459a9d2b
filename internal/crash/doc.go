// Package crash has only tests. It kills a process before every effect of a storing operation on the disk, fills the
// disk at each effect, makes it read-only, and looks at the folder afterwards.
//
// The tests hold the promises of docs/durability.md: what was acknowledged is there; what was not is there whole or not
// at all; nothing else has changed; and there are no leftovers. `go test` does it for one operation of each kind of
// stored thing, `make test-crash` (-args -all) for every storing operation, and kills a real server under clients.
//
// Begin reading with operations_test.go.
package crash
