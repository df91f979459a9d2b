// Package strict reads JSON as the contract wants it: an unknown field, a repeated field, a wrong type, a fraction
// where a whole number is asked, a second value or a number out of range is an *Error that names the field.
//
// It imports the standard library alone. Begin with Read and Decode.
package strict
