// Package startbench measures what the cache of compiled programs saves: processes that start with an empty one against
// processes that start with what the former have left, to the first result of a program.
//
// Each start is a process of its own, this executable with arguments that the caller gives, which calls Once. It imports
// internal/modelbench. Begin reading with Run.
package startbench
