// Package remote makes schedules for networks that stay with a client.
//
// A Session is one exchange. The server asks: which samples, at which noise levels and weights. The client evaluates
// its network there and answers with the per-sample terms of package kernels, 2J numbers in and a few per subspace out,
// as a device would. All else is train's: a Remote learns by the terms, passes.AskGeodesic measures by them. So there
// is one trainer, and a second source of what it consumes.
//
//	session.go   the exchange: questions out, answers in, one at a time
//	work.go      what is done with them, and what is stored
//
// Invariants: one question is unanswered at a time; an answer that cannot be is refused before anything moves; whatever
// ends the exchange, the steps taken are stored.
//
// It imports catalog, input, runs (for what a schedule says of its making) and train. Begin reading with Session.
package remote
