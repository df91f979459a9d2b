// Package checkpoint stores models and the states of runs as folders.
//
//	model/  config.json         EDM's keyword arguments, or those of a mixture
//	        model.safetensors   the state dict of EDM's EDMPrecond: names under "model.",
//	                            PyTorch's layouts; or the tensors of a mixture
//	        schedule.json       optional: the model's own schedule
//	        basis.safetensors   optional: the dense basis of that schedule
//
//	run/    run.json            configuration and counters
//	        state.safetensors   "params/…", "m/…", "v/…", "ema/…" by the parameters' names,
//	                            "theta_m", "theta_v" [rows, J, K−1], "rows" [steps, columns]
//	        network.json, schedule.json, basis.safetensors   as in a model, where there are any
//
// A folder appears whole or not at all, whatever moment the machine stops at (package
// atomicdir), and its bytes depend on its content alone. Nothing that is read is
// trusted: names, shapes, types and sizes are checked, and errors name the tensor.
//
// The package may import kernels, kernels/unet, kernels/mixture, schedule/... and its own
// leaves. Begin with
// model.go.
package checkpoint
