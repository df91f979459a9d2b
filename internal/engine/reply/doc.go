// Package reply is what the replies of all operations have in common: the metadata that travels in their schema, their
// price, and how they are cut into batches.
//
// It imports engine/catalog and flight/api. Begin with Metadata.
package reply
