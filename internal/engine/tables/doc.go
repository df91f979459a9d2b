// Package tables checks the tables that requests bring, and makes those that replies send: their columns, layouts,
// labels, metadata, price and batches.
//
// Its errors are *api.Error and name the column and the row. Begin with Want and Metadata.
package tables
