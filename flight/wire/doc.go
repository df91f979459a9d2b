// Package wire knows bytes alone: how Arrow messages travel and how much memory a message may claim. It has no idea what
// the columns mean.
//
// Allocator bounds the live memory of one IPC reader, so that a small message cannot claim more than its reader was given.
// CheckHeader looks over the description of a message before arrow-go reads it, since arrow-go makes room for as many
// fields as a description claims to have.
//
// It imports arrow-go and the standard library. Begin reading with Allocator.
package wire
