// Package release has no code of its own. Its tests hold what docs/durability.md promises to users of a release: every
// later version reads the data folders that it wrote, and answers the messages that it sent.
//
// testdata/VERSION.zip has what a release left: data, a data folder with one thing of every kind, and session.json, the
// protobuf messages of a session on that folder, as they were on the wire. A new release adds an archive and changes
// none:
//
//	go test ./internal/release -args -write 0.2
package release
