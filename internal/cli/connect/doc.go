// Package connect connects a command to a server, and has the settings that choose the server.
//
// [WithServer] connects to the server of --server, else to the one that holds the folder's lock, else to one in this
// process that ends with the command. Commands have no other way to the engine, except serve, which calls [OpenEngine].
//
// A folder is locked before its engine opens and unlocked after it closes. A device is opened only when a command needs
// one. Runs are stored even after an interrupt.
//
// Begin reading at connect.go, then fields.go.
package connect
