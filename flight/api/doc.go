// Package api is the wire contract of anisoflight without a transport: the requests, the replies, the columns of every
// stream, and the error codes. The service, the engine and the Go client share it.
//
// Every request is one JSON object. Message.Decode reads it strictly: an invalid request is an *Error with code
// BAD_REQUEST that names the field. A well-formed size that is too large for any server is TOO_LARGE.
//
// Begin with Operations, Sample (a request) and Code.
package api
