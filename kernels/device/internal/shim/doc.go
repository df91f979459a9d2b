// Package shim loads PJRT plugins newer than the API that go-xla speaks.
//
// PJRT passes every argument in a struct with its size, and a plugin refuses a struct smaller than the one it was
// built with. go-xla v0.1.4 was built with API 0.83. Two of its structs have grown since:
// PJRT_Executable_GetCompiledMemoryStats_Args (0.90) and PJRT_ExecuteOptions (0.97). [Load] copies the plugin's
// function table and replaces the two entries by wrappers that pass a larger, zero-filled copy. Zero is the default of
// new fields.
//
// C has no closures, so there are four of each wrapper, one per plugin.
//
// A wrapper of PJRT_Client_Compile does what [Plugin.Configure] says: it looks a program up in the cache on disk,
// rewrites it for XLA's CPU compiler, and writes the precision of its products, which go-xla leaves to the plugin. In
// every program it marks the parameters whose memory outputs may take over ([DonorPrefix]).
//
// A wrapper of PJRT_Client_Create blocks signals while the plugin starts its threads, which inherit that. If a library
// of the process calls signal(2), Go's handlers stay.
//
// In a build without cgo, or not for Linux, [Available] is false and Load returns an error.
package shim
