// Package api is the wire contract of anisoflight without a transport: the requests that clients send, the replies they
// read, the columns of every stream, and the error codes they can rely on.
//
// The service, the engine and the Go client share it, so a field exists in one place.
//
// Every request is one JSON object; Message.Decode reads it strictly: what is refused is an *Error
// with code BAD_REQUEST that names the field. A size that is well formed but larger than any server could serve is
// TOO_LARGE.
//
// Begin with Operations (what there is), Sample (a request) and Code (what can go wrong).
package api
