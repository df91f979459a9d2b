// Package strict reads JSON as the contract wants it: an unknown field, a repeated field, a wrong type, a fraction
// where a whole number is asked, a second value or a number out of range is an *Error that names the field.
//
// It takes what languages without integers or optional fields write: 8.0 is 8, a uint64 may be text, since a double
// cannot hold it, and a field that is null is absent.
//
// It imports the standard library alone. Begin with Read and Decode.
package strict
