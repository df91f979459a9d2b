// Package diskcache keeps compiled programs on disk between processes.
//
// A store is a folder with one file per program, named by the hash of everything
// that the compiled code depends on:
//
//	KEY    "anisoflight program 1\n" | SHA-256 of the rest, 32 bytes | the executable
//
// A file appears whole or not at all, so processes may share a folder. What is
// damaged reads as absent and is written anew. When the files together exceed the
// limit those used longest ago go. The cache only saves time: no failure of the
// file system is an error.
//
// Whoever can write to the folder can run code in the processes that read it. It
// is made for its owner alone.
//
// The package imports the standard library only.
package diskcache
