package kernels

import "context"

// Warm compiles what a [Trajectory] of up to batch samples that keeps history
// evaluations runs, unless that is done. [Model.Denoise] runs one of the same two
// programs. A context that ends leaves the compilation to the next caller.
func (m *Model) Warm(ctx context.Context, batch, history int) error {
	if _, err := m.evaluateProgram(ctx, Bucket(batch)); err != nil {
		return err
	}
	_, err := m.combineProgram(ctx, Bucket(batch), history)
	return err
}
