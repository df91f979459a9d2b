// Package wire encodes and decodes the messages of Arrow Flight, and bounds the memory that a message may claim. It
// does not know what columns mean.
//
// Codec is gRPC's codec. Writer and Stream make messages whose tables are sent without a copy before the socket's
// buffer. A received table is copied once. The bytes are those of Arrow Flight; a FlightData is
//
//	descriptor      field 1, in the first message of an upload
//	header          field 2, the flatbuffer that describes the body, then zeros
//	app_metadata    field 3
//	body            field 1000: buffers, each padded with zeros to a multiple of 64 bytes
//
// The zeros after the header align the received buffers: see align.go.
//
// Allocator bounds the memory of an IPC reader, because a small message can claim any size. CheckHeader checks the
// header of a message before arrow-go reads it, because arrow-go allocates as many fields as a header claims.
//
// Invariants: A message is sent from its own memory or from zeros, never from other memory. A received body is
// overwritten completely. Memory that is sent belongs to Go's garbage collector, so that nobody has to free it.
//
// Begin reading with Codec, then Writer.
package wire
