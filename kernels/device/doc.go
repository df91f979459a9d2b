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
// XLA runs through a PJRT plugin, a shared library. It is searched in this order: [Config.Plugin], ANISOFLIGHT_PLUGIN,
// the Python environment whose bin contains this program, the project's .venv, the active environment (VIRTUAL_ENV,
// CONDA_PREFIX). If the machine has an NVIDIA GPU, CUDA plugins go first. Without a plugin, or in a build without cgo,
// programs run on the pure-Go backend, which is about 20 times slower, with a warning. Nothing is ever downloaded.
// [Device.Report] says what was found.
//
// # Several devices
//
// [Config.Devices] asks for more than one; [Device.Peers] lists them. They share compiled programs; each has its own
// buffers and memory. Package collective computes across them.
//
// # Invariants
//
//   - Plugin files are verified before they are loaded. Panics of graph building, compiling and running become errors.
//   - A buffer is live, donated or released. Any use of one that is not live returns [ErrDonated] or [ErrReleased].
//   - Each key is compiled once at a time. An executable in use is never finalised.
//
// The race detector does not see the locking of go-xla's argument memory: `go test -race` needs its build tag race_mu.
//
// Begin reading at device.go, then plugin.go for the search, and program.go, run.go and buffer.go.
package device
