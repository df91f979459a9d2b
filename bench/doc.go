// Package bench measures what the project's programs, service and caches cost on this machine. Its command,
// anisoflight-bench, is built apart from anisoflight, which links nothing of it.
//
// There is one benchmark for each question:
//
//	model      what a network's evaluation, derivatives, training steps and sampling cost
//	estimator  what a training step costs by mode of the estimator of the schedule's gradient
//	memory     how much memory a process needs that runs one program, and for how long
//	compile    what the cache of compiled programs saves at a second start
//	lower      nothing: it writes programs for bench/gpu_compile.py
//	service    what the service adds to sampling, and what dynamic batching saves
//	rate       how close served sampling comes to the bare network
//	flight     how fast tables travel over Arrow Flight
//
// All of them work in rounds. A round takes every measure once, so that the load of the machine meets all measures
// alike, and ratios are taken within a round. A report has medians and quartiles over the rounds.
//
// It may import every other package but internal/cli. Begin reading with command.go, then the file named after a
// benchmark.
package bench
