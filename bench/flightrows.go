package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sys/unix"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/tensor"
)

// What travels: images of 64 × 64 × 1 float32, 128 of them in a batch of 2 MiB.
const (
	side       = 64
	rowBytes   = side * side * 4
	batchBytes = 2 << 20
	batchRows  = batchBytes / rowBytes
	blocks     = 16 // batches in turn, so that they do not all lie in the processor's caches
)

var imageSchema = api.Schema{Columns: []api.Column{
	{Name: "x", Type: api.Float32, Kind: api.Tensor, Shape: []int{side, side, 1}, DimNames: []string{"H", "W", "C"}},
}}

// pixels are the batches' numbers; nobody writes to them once they are made.
func pixels() [blocks][]float32 {
	var p [blocks][]float32
	for i := range p {
		p[i] = make([]float32, batchRows*side*side)
		for j := range p[i] {
			p[i][j] = float32(i + j)
		}
	}
	return p
}

// arrowSchema is imageSchema in Arrow.
func arrowSchema() (*arrow.Schema, error) {
	t, err := tensor.New(arrow.PrimitiveTypes.Float32, []int{side, side, 1}, []string{"H", "W", "C"})
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema([]arrow.Field{{Name: "x", Type: t}}, nil), nil
}

// records are the batches in Arrow, in the memory of pixels.
type records [blocks]arrow.RecordBatch

func newRecords(s *arrow.Schema, p [blocks][]float32) (r records) {
	for i, block := range p {
		flat := []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Float32Traits.CastToBytes(block))}
		numbers := array.NewData(arrow.PrimitiveTypes.Float32, len(block), flat, nil, 0, 0)
		images := array.NewData(s.Field(0).Type, batchRows, []*memory.Buffer{nil}, []arrow.ArrayData{numbers}, 0, 0)
		r[i] = array.NewRecordBatch(s, []arrow.Array{array.MakeFromData(images)}, batchRows)
	}
	return r
}

// batch returns the first n rows of batch i.
func (r *records) batch(i, n int) arrow.RecordBatch { return r[i%blocks].NewSlice(0, int64(n)) }

// batches calls do with the number and the rows of each batch of so many rows in all.
func batches(rows int, do func(i, n int) error) error {
	for i := 0; rows > 0; i++ {
		n := min(rows, batchRows)
		if err := do(i, n); err != nil {
			return err
		}
		rows -= n
	}
	return nil
}

// bareTCP sends so many bytes over the loopback interface, written and read in pieces of 1 MiB.
func bareTCP(ctx context.Context, bytes int) (time.Duration, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			sent <- err
			return
		}
		defer c.Close()
		piece := make([]byte, 1<<20)
		for left := bytes; left > 0 && err == nil; {
			var n int
			n, err = c.Write(piece[:min(left, len(piece))])
			left -= n
		}
		sent <- err
	}()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	piece := make([]byte, 1<<20)
	started := time.Now()
	for left := bytes; left > 0; {
		n, err := io.ReadFull(c, piece[:min(left, len(piece))])
		if err != nil {
			return 0, err
		}
		left -= n
	}
	return time.Since(started), <-sent
}

// memcpy copies so many batches.
func memcpy(from [blocks][]float32, batches int) time.Duration {
	to := make([]float32, len(from[0]))
	copy(to, from[0]) // the pages are there
	started := time.Now()
	for i := range batches {
		copy(to, from[i%blocks])
	}
	return time.Since(started)
}

// sharedMemory is a folder of files in memory, or the folder for temporary files where there is none.
func sharedMemory() string {
	const linux = "/dev/shm"
	if info, err := os.Stat(linux); err == nil && info.IsDir() {
		return linux
	}
	return os.TempDir()
}

// throughFile writes so many batches to a file, maps it and copies them out of the mapping: what a reply in a file that
// the client maps takes at least. A file that was written before has its pages already.
func throughFile(file *os.File, from [blocks][]float32, batches int) (written, read time.Duration, err error) {
	started := time.Now()
	for i := range batches {
		if _, err := file.WriteAt(arrow.Float32Traits.CastToBytes(from[i%blocks]), int64(i)*batchBytes); err != nil {
			return 0, 0, err
		}
	}
	written = time.Since(started)
	to := make([]float32, len(from[0]))
	copy(to, from[0]) // the pages are there
	started = time.Now()
	mapped, err := unix.Mmap(int(file.Fd()), 0, batches*batchBytes, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, unix.Munmap(mapped)) }()
	for i := range batches {
		copy(arrow.Float32Traits.CastToBytes(to), mapped[i*batchBytes:])
	}
	read = time.Since(started)
	if !slices.Equal(to, from[(batches-1)%blocks]) {
		return 0, 0, errors.New("a file has other numbers than were written")
	}
	return written, read, nil
}

// window is how many batches of an exchange are under way.
const window = 4

// flightClient does an operation a number of times and returns how long each took.
type flightClient func(ctx context.Context, operation string, rows, times int) ([]time.Duration, error)
