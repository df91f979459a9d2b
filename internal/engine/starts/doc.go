// Package starts puts samples where they start: at states drawn from the law of the data that a schedule carries.
//
// It imports catalog and schedule. Begin reading with New.
package starts
