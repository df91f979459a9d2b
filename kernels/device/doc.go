// Package device runs compiled tensor programs: it finds and loads a PJRT plugin, compiles graphs once, and keeps
// tensors on the device.
//
// A [Device] is opened once per process:
//
//	dev, err := device.Open(device.Config{})
//	defer dev.Close()
//	double, err := dev.Program(ctx, "double f32[3]", func(g *graph.Graph) []*graph.Node {
//		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 3))
//		return []*graph.Node{graph.MulScalar(x, 2)}
//	})
//	in, err := dev.Upload([]float32{1, 2, 3}, 3)
//	out, err := double.Run(ctx, device.Use(in))
//	err = out[0].Read(dst)
//
// # Backend
//
// XLA through a PJRT plugin, a shared library that is looked for in this order: [Config.Plugin], ANISOFLIGHT_PLUGIN,
// the Python environment whose bin holds this program, the project's .venv, the active environment (VIRTUAL_ENV,
// CONDA_PREFIX). A CUDA plugin goes before a CPU plugin when the machine has an NVIDIA GPU. If nothing is asked for and
// there is no plugin, or in a build without cgo, programs run on the pure-Go backend, about 20 times slower, and one
// warning says so. Nothing is ever downloaded. [Device.Report] tells what was found and why the rest was not used.
//
// # Several devices
//
// [Config.Devices] asks for more than one; [Device.Peers] lists them. They share their compiled programs; each has
// buffers and an account of memory of its own. Package collective computes across them.
//
// # Invariants
//
//   - Plugin files are verified before they are loaded. Panics of graph building, compiling and running become errors
//     here, once.
//   - A buffer is live, donated or released; only a live one reaches the backend.
//     Any other use is [ErrDonated] or [ErrReleased].
//   - One compilation per key at a time, whoever asks; an executable in use is
//     never finalised, however full the cache is.
//
// go-xla keeps one pool of argument memory per processor, which is safe but invisible to the race detector. Its build
// tag race_mu adds the locks that `go test -race` needs.
//
// Begin reading at device.go, then plugin.go for the way to a plugin, program.go, run.go and buffer.go for the way of a
// tensor.
package device
