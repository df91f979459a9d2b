// Package connect is the way of a command to a server, and the settings that choose it.
//
// [WithServer] finds the server of a data folder: that of --server, else the one that holds the folder's lock, else one
// in this process for as long as the command takes. Commands have no other way to the engine; serve alone opens it with
// [OpenEngine].
//
// A folder is locked before its engine opens and freed after it closes. A device is opened only where a command needs
// one. Runs are stored even after an interrupt.
//
// Begin reading at connect.go, then fields.go.
package connect
