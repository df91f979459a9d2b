// Package input checks the tables that requests bring: their columns, layouts, labels and values.
//
// It imports flight/api, internal/engine/catalog and train/data. Its errors are *api.Error, BAD_TENSOR or
// BAD_REQUEST, and name the column and the row. Begin with Want.
package input
