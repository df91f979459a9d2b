// Package uploads receives data sets, models, conditions, bases and schedules, and stores each whole or not at all.
//
// Nothing is stored before Commit, and nothing of a batch's memory is kept. An upload takes no more bytes than its
// limit. Begin with Uploads.
package uploads
