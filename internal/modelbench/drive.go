package modelbench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Hello is the first line that Drive writes.
type Hello struct {
	Device     string   `json:"device"`
	Precision  string   `json:"precision"`
	Parameters int      `json:"parameters"`
	Batch      int      `json:"batch"`
	NFE        int      `json:"nfe"`
	Matmul     float64  `json:"matmul_gflops"` // the device's rate of matrix products in that precision
	Programs   []string `json:"programs"`
}

// Order is a line that Drive reads, an object with one of these fields.
type Order struct {
	Compile string   `json:"compile,omitempty"` // program to make ready; answered by Compiled
	Run     string   `json:"run,omitempty"`     // program to run; answered by Timing
	Calls   int      `json:"calls,omitempty"`   // of Run; default 1
	Peak    string   `json:"peak,omitempty"`    // program whose memory is asked for; answered by Peak
	Save    string   `json:"save,omitempty"`    // file for inputs and outputs, see Bench.Save; answered by {}
	Of      []string `json:"of,omitempty"`      // the programs that Save is about; default all
}

// Drive does what lines of JSON say and answers each by one, until they end. An order
// that fails is answered by {"error": "…"}.
func Drive(ctx context.Context, b *Bench, r io.Reader, w io.Writer) error {
	hello := Hello{Device: b.dev.Name(), Precision: string(b.at), Parameters: b.net.ParamCount(), Batch: b.in.batch, NFE: NFE, Programs: Programs()}
	var err error
	if hello.Matmul, err = b.matmul(ctx); err != nil {
		return err
	}
	answers := json.NewEncoder(w)
	if err := answers.Encode(hello); err != nil {
		return err
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		answer, err := b.follow(ctx, lines.Bytes())
		if err != nil {
			answer = struct {
				Error string `json:"error"`
			}{err.Error()}
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (b *Bench) follow(ctx context.Context, line []byte) (any, error) {
	var o Order
	if err := json.Unmarshal(line, &o); err != nil {
		return nil, fmt.Errorf("the order is not understood: %w", err)
	}
	switch {
	case o.Compile != "":
		return b.Compile(ctx, o.Compile)
	case o.Run != "":
		return b.Run(ctx, o.Run, max(o.Calls, 1))
	case o.Peak != "":
		return b.Peak(ctx, o.Peak)
	case o.Save != "":
		if o.Of == nil {
			o.Of = slices.Clone(Programs())
		}
		return struct{}{}, b.Save(ctx, o.Save, o.Of)
	}
	return nil, fmt.Errorf("an order says compile, run, peak or save")
}
