package device

import (
	"context"
	"errors"
	"fmt"
)

// Together makes a program that runs on the first n devices of its device's backend at once, where it may compute with
// values of the others: see graph.Graph.Distributed. It has one parameter and one output.
func Together(n int) ProgramOption { return func(p *Program) { p.share = n } }

// RunTogether is [Program.Run] of a program made with [Together]: args are those of device 0, 1, …, and so are the
// outputs. Such runs go one after the other, so that no two can wait for each other.
//
// One output is what go-xla can return of several devices: it reads all of them past the end of the first device's
// list, behind which the lists of the others lie only as long as each has one entry (TestOutputsOfSeveralDevices).
func (p *Program) RunTogether(ctx context.Context, args ...Arg) ([]*Buffer, error) {
	d := p.dev
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	exe, err := p.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer exe.release()
	if err := p.fitTogether(exe, args); err != nil {
		return nil, err
	}
	unlock, err := lock(p.key, args)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d.together.Lock()
	defer d.together.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, err := p.launch(exe, args)
	if err != nil {
		return nil, err
	}
	return p.adopt(out)
}

// fitTogether compares the arguments, one of each device, with the program's parameter.
func (p *Program) fitTogether(exe *executable, args []Arg) error {
	if len(exe.inputs) != 1 || len(exe.exec.Outputs()) != 1 {
		return &ProgramError{Key: p.key, Phase: "run", Err: errors.New("it must have one parameter and one output")}
	}
	if len(args) != p.share {
		return &ArgumentError{Key: p.key, Index: -1, Err: fmt.Errorf("got %d arguments, want %d", len(args), p.share)}
	}
	for i := range args {
		var wrong *ArgumentError
		if err := fit(p.key, p.dev.devices[i], exe.inputs, args[i:i+1]); errors.As(err, &wrong) {
			return &ArgumentError{Key: p.key, Index: i, Err: wrong.Err}
		}
	}
	return nil
}
