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
	Matmul  bool     `json:"matmul,omitempty"`  // measure products of matrices; answered by Rate
}

// Rate is the device's rate of matrix products in the bench's precision. It is measured
// when it is asked for, as its matrices would count in Peak.
type Rate struct {
	Matmul float64 `json:"matmul_gflops"`
}

// Drive does what lines of JSON say and answers each by one, until they end. An order
// that fails is answered by {"error": "…"}.
func Drive(ctx context.Context, b *Bench, r io.Reader, w io.Writer) error {
	hello := Hello{Device: b.dev.Name(), Precision: string(b.at), Parameters: b.net.ParamCount(), Batch: b.in.batch, NFE: NFE, Programs: Programs()}
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
	if o.Matmul {
		rate, err := b.matmul(ctx)
		return Rate{rate}, err
	}
	return nil, fmt.Errorf("an order says compile, run, peak, save or matmul")
}
