// Package processes lets several processes train as one: each has its place among them, and they add numbers up.
//
// A [Link] joins them, by MPI (package mpi) or, in tests, within one process (package processestest). It has two
// methods: which process this is, and an exchange of bytes. All else is here, once for every link: sums in the order of
// the processes ([Sum]), whether all can go on and are at the same step ([World.Agree]), and whether they have the same
// version, data and settings ([World.Compare]).
//
// Every process calls the same methods in the same order. Whoever cannot go on says so in the next Agree, and all end.
//
// The package imports the standard library. Begin reading with [World].
package processes
