// Package tables checks the tables of requests, and makes those of replies: columns, layouts, labels, metadata, price
// and batches.
//
// Its errors are *api.Error and name the column and the row. Begin with CheckColumns and Metadata.
package tables
