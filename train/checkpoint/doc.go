// Package checkpoint stores models and the states of runs as folders.
//
//	model/  config.json         EDM's keyword arguments
//	        model.safetensors   the state dict of EDM's EDMPrecond
//	        schedule.json       optional: the model's own schedule
//	        basis.safetensors   optional: the dense basis of that schedule
//
//	run/    run.json            configuration and counters
//	        state.safetensors   parameters, moments, averages, θ, metric rows
//	        network.json  schedule.json  basis.safetensors
//
// A folder appears whole or not at all, whatever moment the machine stops at, and
// its bytes depend on its content alone.
//
// The package may import kernels/unet, schedule/..., train/folder and
// train/checkpoint/safetensors. Begin with model.go.
package checkpoint
