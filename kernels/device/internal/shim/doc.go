// Package shim loads PJRT plugins newer than the API that go-xla speaks.
//
// PJRT passes every argument in a struct that carries its own size, and a plugin refuses a struct smaller than the one
// it was built with. go-xla v0.1.4 was built with API 0.83. Two structs that it passes have grown since:
// PJRT_Executable_GetCompiledMemoryStats_Args (0.90) and PJRT_ExecuteOptions (0.97). [Load] copies the plugin's
// function table and replaces the two entries that take them with wrappers that pass a larger, zero-filled copy: zero
// is what a caller who knows nothing of a new field means. All other entries are the plugin's own.
//
// The wrappers need to know which plugin they belong to and C has no closures, so there are four of each, one per
// loaded plugin.
//
// A third wrapper, around PJRT_Client_Compile, does what [Plugin.Configure] asks for: it looks a program up in the
// cache on disk, rewrites it for XLA's CPU compiler, and writes the precision of its products, which go-xla leaves to
// the plugin. In every program it marks the parameters whose memory outputs may take over ([DonorPrefix]).
//
// A fourth, around PJRT_Client_Create, blocks signals while the plugin starts its threads, which inherit that.
// Where a library of the process calls signal(2), Go's handlers stay.
//
// In a build without cgo, or for another system than Linux, [Available] is false and Load returns an error.
package shim
