// Package catalog holds what is stored in a data folder, and the folder's lock.
//
// One process at a time works on a data folder: whoever holds its [Lock]. It imports the standard library. Begin reading
// at lock.go.
package catalog
