package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// pyClient is a pyarrow client in its own process. It takes orders and gives answers as lines of JSON.
type pyClient struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// pyOrder is an order to a pyClient.
type pyOrder struct {
	Location  string `json:"location"`
	Operation string `json:"operation"`
	Name      string `json:"name"` // of the operation on the server
	Rows      int    `json:"rows"`
	BatchRows int    `json:"batch_rows"`
	Side      int    `json:"side"`
	Window    int    `json:"window"`
	Times     int    `json:"times"`
}

// pyAnswer is its answer.
type pyAnswer struct {
	Seconds []float64 `json:"seconds"` // each time
	Rows    int       `json:"rows"`
	Error   string    `json:"error"`
}

func startPython(ctx context.Context, interpreter string) (*pyClient, error) {
	p := &pyClient{cmd: exec.CommandContext(ctx, interpreter, "-m", "bench_flight")}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	p.cmd.Stderr = os.Stderr
	return p, p.cmd.Start()
}

// close ends the process.
func (p *pyClient) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// clientOf returns the client of the service at a location.
func (p *pyClient) clientOf(location string) flightClient {
	return func(_ context.Context, operation string, rows, times int) ([]time.Duration, error) {
		o := pyOrder{
			Location: location, Operation: operation, Name: getOp, Rows: rows, BatchRows: batchRows, Side: side,
			Window: window, Times: times,
		}
		switch operation {
		case "put":
			o.Name = putOp
		case "exchange":
			o.Name = exchangeOp
		}
		return p.do(o)
	}
}

// do has an operation done o.Times times and returns how long each took.
func (p *pyClient) do(o pyOrder) ([]time.Duration, error) {
	if err := json.NewEncoder(p.in).Encode(o); err != nil {
		return nil, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("python -m bench_flight ended: %w", err)
	}
	var a pyAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, fmt.Errorf("pyarrow %s: %s", o.Operation, a.Error)
	}
	if a.Rows != o.Rows || len(a.Seconds) != o.Times {
		return nil, fmt.Errorf("pyarrow %s: %d rows of %d arrived", o.Operation, a.Rows, o.Rows)
	}
	took := make([]time.Duration, len(a.Seconds))
	for i, s := range a.Seconds {
		took[i] = time.Duration(s * float64(time.Second))
	}
	return took, nil
}
