// Package wire knows bytes alone: how Arrow messages travel and how much memory a message may claim. It has no idea
// what the columns mean.
//
// Codec is gRPC's codec. Tables are sent from the memory in which they lie, up to the socket's buffer, and received by
// one copy; Writer and Stream make the messages that it sends so. What is on the wire is Flight as every other client
// and server speaks it: one FlightData is
//
//	descriptor      field 1, in the first message of an upload
//	header          field 2, the flatbuffer that describes the body, then zeros
//	app_metadata    field 3
//	body            field 1000: buffers, each padded with zeros to a multiple of 64 bytes
//
// The zeros behind the header let the buffers arrive aligned: see align.go.
//
// Allocator bounds the live memory of one IPC reader, so that a small message cannot claim more than its reader was
// given.
// CheckHeader looks over the description of a message before arrow-go reads it, since arrow-go makes room for as many
// fields as a description claims to have.
//
// Invariants: what is sent is the message's own memory or zeros, never memory that held something else; received bodies
// are overwritten whole; memory that is sent belongs to Go's collector, so that nobody needs to know when it was.
//
// Begin reading with Codec, then Writer.
package wire
