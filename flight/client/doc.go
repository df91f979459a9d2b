// Package client is the Go client of the service. It has a method for every operation of the contract.
//
// Requests are the types of flight/api; a zero field means the operation's default. Operations with rows return an
// iterator of messages, whose columns are flat Go slices (api.ColumnOf). If the loop or the context ends, the server
// stops the work within one evaluation of the network. Operations that take rows have an iterator of batches as their
// last argument. Errors of the server are *api.Error, with the stable codes of the contract:
//
//	var e *api.Error
//	if errors.As(err, &e) && e.Code == api.ModelNotFound { … }
//
// Programs whose requests are data, such as the command line, call operations by name. [Client.Action], [Client.Get]
// and [Client.Put] send a map or JSON unchanged.
//
// Begin reading with Dial.
package client
