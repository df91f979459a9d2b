package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/anisoflight/anisoflight/internal/process"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// hello is the first line that drive writes.
type hello struct {
	Device     string   `json:"device"`
	Precision  string   `json:"precision"`
	Parameters int      `json:"parameters"`
	Batch      int      `json:"batch"`
	NFE        int      `json:"nfe"`
	Programs   []string `json:"programs"`
}

// order is a line that drive reads, an object with one of these fields.
type order struct {
	Compile  string   `json:"compile,omitempty"`  // program to make ready; answered by compiled
	Run      string   `json:"run,omitempty"`      // program to run; answered by timing
	Calls    int      `json:"calls,omitempty"`    // of Run; default 1
	Peak     string   `json:"peak,omitempty"`     // program whose memory is asked for; answered by peak
	Save     string   `json:"save,omitempty"`     // file for inputs and outputs, see save; answered by {}
	Programs []string `json:"programs,omitempty"` // of Save; default those of model
	Digest   string   `json:"digest,omitempty"`   // program whose bits are asked for; answered by digestAnswer
	Matmul   bool     `json:"matmul,omitempty"`   // measure products of matrices; answered by matmulAnswer
}

// matmulAnswer has the device's rate of matrix products in the bench's precision. It is measured on request, since its
// matrices would count in peak.
type matmulAnswer struct {
	Matmul float64 `json:"matmul_gflops"`
}

// digestAnswer identifies what a program has computed.
type digestAnswer struct {
	Digest string `json:"digest"` // SHA-256 of all
}

// drive reads orders as lines of JSON, executes them and answers each with a line. An order that fails is answered with
// {"error": "…"}.
func (b *modelBench) drive(ctx context.Context, r io.Reader, w io.Writer) error {
	answers := json.NewEncoder(w)
	if err := answers.Encode(hello{
		Device: b.dev.Name(), Precision: string(b.precision), Parameters: b.net.ParamCount(), Batch: b.inputs.batch,
		NFE: sampleNFE, Programs: programNames(),
	}); err != nil {
		return err
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		answer, err := b.execute(ctx, lines.Bytes())
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (b *modelBench) execute(ctx context.Context, line []byte) (any, error) {
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return nil, fmt.Errorf("an order must be JSON: %w", err)
	}
	switch {
	case o.Compile != "":
		return b.compile(ctx, o.Compile)
	case o.Run != "":
		return b.run(ctx, o.Run, max(o.Calls, 1))
	case o.Peak != "":
		return b.peak(ctx, o.Peak)
	case o.Save != "":
		if o.Programs == nil {
			o.Programs = modelPrograms
		}
		return struct{}{}, b.save(ctx, o.Save, o.Programs)
	case o.Digest != "":
		d, err := b.digest(ctx, o.Digest)
		return digestAnswer{d}, err
	case o.Matmul:
		r, err := b.matmul(ctx)
		return matmulAnswer{r}, err
	}
	return nil, fmt.Errorf("an order must have compile, run, peak, save, digest or matmul, got %s", line)
}

// peak is the memory of a process that has run one program.
type peak struct {
	Program string `json:"program"`
	// Bytes is the most that was resident, less what was before the model was loaded.
	Bytes int64 `json:"peak_bytes"`
	// Process is the most that was resident of the whole process.
	Process int64 `json:"process_bytes"`
}

// peak runs a program three times and returns how far the memory of this process has grown. The number is that of the
// program only if nothing else has run and the program came from the cache on disk, since compiling takes memory, too.
func (b *modelBench) peak(ctx context.Context, name string) (peak, error) {
	_, err := b.run(ctx, name, 3)
	_, most := process.Resident()
	return peak{name, most - b.baseline, most}, err
}

// save writes a safetensors file of the inputs, as input/NAME, and of the outputs of the programs, as output/PROGRAM or
// output/PROGRAM/NAME: images in NHWC, gradients of parameters in PyTorch's layout. Training steps draw their noise, so
// of them the file has the terms of the estimator at input/eps and, if the estimator has a probe, input/z.
func (b *modelBench) save(ctx context.Context, path string, names []string) (err error) {
	f := &safetensors.File{Tensors: b.inputs.namedTensors()}
	for _, name := range names {
		p, err := b.program(ctx, name)
		if err != nil {
			return err
		}
		out, err := p.outputs(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f.Tensors = append(f.Tensors, out...)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriter(file)
	if err := safetensors.Write(buffered, f); err != nil {
		return err
	}
	return buffered.Flush()
}
