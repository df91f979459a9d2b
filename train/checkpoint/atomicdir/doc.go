// Package atomicdir makes folders that appear whole or not at all, and that tell when a file of theirs has changed.
//
// A folder is filled under a hidden name beside its place (".tmp-…"), every file in it is flushed to the disk, and it
// is then renamed into place; a folder that stood there before is exchanged for it in the same system call where the
// system has one. A crash leaves the old folder, or the new one, and at most a hidden leftover that [Prefix] names and
// [Sweep] removes. [WriteFile] does the same for a file of its own.
//
// Each folder carries a manifest of its files, hashed while they were written:
//
//	manifest.json   {"format": "anisoflight-manifest", "version": 1,
//	                 "files": {NAME: {"size": bytes, "sha256": hex}}, "sha256": of the list above in compact JSON}
//
// Invariants: no file of a committed folder is ever changed; what is read of a folder with a manifest is what was
// written, or a [*DamageError] that names the file. A folder without one, of an older program or made by hand, is read
// as it is.
//
// Everything that changes the file system is announced in system.go, where tests count, refuse and stop it. The package
// imports nothing of the project. Begin at [Write] and [Read].
package atomicdir
