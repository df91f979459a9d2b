package flight

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"

	"github.com/anisoflight/anisoflight/flight/api"
)

func labels(values ...int32) input {
	s := api.Schema{Columns: []api.Column{{Name: "label", Type: api.Int32}}}
	return input{s, api.Batch{Rows: len(values), Cols: []any{values}}}
}

// put is a client's side of a DoPut.
type put struct {
	stream flight.FlightService_DoPutClient
	writer *flight.Writer
}

var target = &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"datasets", "digits"}}

func (s *testServer) put(
	ctx context.Context, t *testing.T, d *flight.FlightDescriptor, schema *arrow.Schema, options ...ipc.Option,
) *put {
	t.Helper()
	stream, err := s.client.DoPut(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := flight.NewRecordWriter(stream, append(options, ipc.WithSchema(schema))...)
	w.SetFlightDescriptor(d)
	return &put{stream, w}
}

// end ends the stream cleanly and gives the answer.
func (p *put) end() (string, error) {
	_ = errors.Join(p.writer.Close(), p.stream.CloseSend())
	result, err := p.stream.Recv()
	if err != nil {
		return "", err
	}
	if _, err := p.stream.Recv(); !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("after the answer: %w", err)
	}
	return string(result.GetAppMetadata()), nil
}

func (s *testServer) storedLabels(name string) []int32 {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	return s.fake.stored[name]
}

func (s *testServer) aborts() int {
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	return s.fake.aborts
}

func TestUploadIsStored(t *testing.T) {
	s := serve(t, Config{})
	for name, options := range map[string][]ipc.Option{"plain": nil, "lz4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()}} {
		d := &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(`{"op":"PutDataset","name":"` + name + `"}`)}
		p := s.put(t.Context(), t, d, labels().record(t).Schema(), options...)
		for _, in := range []input{labels(1, 2, 3), labels(), labels(4, 5)} {
			if err := p.writer.Write(in.record(t)); err != nil {
				t.Fatal(err)
			}
		}
		if answer, err := p.end(); answer != `{"rows":5}` || err != nil {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
		if got := s.storedLabels(name); !slices.Equal(got, []int32{1, 2, 3, 4, 5}) {
			t.Errorf("%s: stored %v", name, got)
		}
	}
	p := s.put(t.Context(), t, target, labels().record(t).Schema())
	if answer, err := p.end(); answer != `{"rows":0}` || err != nil {
		t.Errorf("no batches: %q, %v", answer, err)
	}
}

// TestUploadThatBreaksOffIsForgotten: an upload that is cancelled, exceeds its deadline or loses its connection is
// aborted.
func TestUploadThatBreaksOffIsForgotten(t *testing.T) {
	s := serve(t, Config{})
	in := labels(1, 2).record(t)
	other := connect(t, s.address)
	for i, breakOff := range []func(cancel func()){
		func(cancel func()) { cancel() },
		func(func()) { time.Sleep(250 * time.Millisecond) },
		func(func()) { _ = other.Close() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		from := s
		switch i {
		case 1:
			ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		case 2:
			from = &testServer{Server: s.Server, fake: s.fake, client: other}
		}
		p := from.put(ctx, t, target, in.Schema())
		if err := p.writer.Write(in); err != nil {
			t.Fatal(err)
		}
		eventually(t, "start", time.Second, func() bool { return s.activeCalls() == 1 })
		time.Sleep(20 * time.Millisecond)
		breakOff(cancel)
		eventually(t, "end", time.Second, func() bool { return s.activeCalls() == 0 })
		cancel()
		if got := s.storedLabels("digits"); got != nil {
			t.Fatalf("case %d: stored %v", i, got)
		}
		if s.aborts() != i+1 {
			t.Errorf("case %d: %d uploads aborted", i, s.aborts())
		}
	}
}

func TestUploadErrorsAreToldAtTheEnd(t *testing.T) {
	s := serve(t, Config{MaxMessageBytes: 1 << 20})
	none := images(2, 2, 1)
	permuted := permutedRecord(t)
	for name, c := range map[string]struct {
		command string
		record  arrow.RecordBatch
		code    codes.Code
		begin   string
	}{
		"no op":    {`{"name":"x"}`, labels(1).record(t), codes.InvalidArgument, "[BAD_REQUEST] "},
		"columns":  {`{"op":"PutDataset"}`, none.record(t), codes.InvalidArgument, "[BAD_TENSOR] "},
		"permuted": {`{"op":"PutDataset"}`, permuted, codes.InvalidArgument, "[BAD_TENSOR] "},
		"too large": {
			`{"op":"PutDataset"}`, labels(make([]int32, 300_000)...).record(t), codes.ResourceExhausted,
			"[TOO_LARGE] ",
		},
		"busy":  {`{"op":"PutDataset","fail":"busy"}`, labels(1).record(t), codes.ResourceExhausted, "[BUSY] "},
		"panic": {`{"op":"PutDataset","fail":"panic"}`, labels(1).record(t), codes.Internal, "[INTERNAL] "},
	} {
		p := s.put(t.Context(), t, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(c.command)},
			c.record.Schema())
		for i := range 20 { // the server reads on after it has refused
			if err := p.writer.Write(c.record); err != nil {
				t.Fatalf("%s: batch %d: %v", name, i, err)
			}
		}
		_, err := p.end()
		wantStatus(t, name, err, c.code, c.begin)
		if got := s.storedLabels(""); got != nil {
			t.Errorf("%s: stored %v", name, got)
		}
	}
	eventually(t, "end of calls", time.Second, func() bool { return s.activeCalls() == 0 })
}

// TestRefusedUploadDoesNotWaitForEver: a client that does not end a refused stream gets the error after Patience.
func TestRefusedUploadDoesNotWaitForEver(t *testing.T) {
	s := serve(t, Config{Patience: 100 * time.Millisecond})
	in := images(2, 2, 1).record(t)
	p := s.put(t.Context(), t, target, in.Schema())
	if err := p.writer.Write(in); err != nil {
		t.Fatal(err)
	}
	_, err := p.stream.Recv()
	wantStatus(t, "idle client", err, codes.InvalidArgument, "[BAD_TENSOR] ")
}

// TestBombs: a few bytes that claim 2⁴⁰, and a stream that is not an Arrow stream.
func TestBombs(t *testing.T) {
	s := serve(t, Config{MaxMessageBytes: 1 << 20})
	recorder := &messages{}
	in := labels(make([]int32, 4096)...).record(t)
	w := flight.NewRecordWriter(recorder, ipc.WithSchema(in.Schema()), ipc.WithZstd())
	w.SetFlightDescriptor(target)
	if err := w.Write(in); err != nil {
		t.Fatal(err)
	}
	claimed := binary.LittleEndian.AppendUint64(nil, 4096*4)
	bomb := recorder.list[1].GetDataBody()
	i := bytes.Index(bomb, claimed)
	if i < 0 {
		t.Fatal("no length found")
	}
	binary.LittleEndian.PutUint64(bomb[i:], 1<<40)
	wantStatus(t, "bomb", s.send(t, recorder.list...), codes.ResourceExhausted, "[TOO_LARGE] ")

	binary.LittleEndian.PutUint64(bomb[i:], 4096*4)
	junk := &flight.FlightData{FlightDescriptor: target, DataHeader: []byte("not a flatbuffer")}
	wantStatus(t, "junk", s.send(t, junk), codes.InvalidArgument, "[BAD_TENSOR] ")
	wantStatus(t, "nothing", s.send(t), codes.InvalidArgument, "[BAD_TENSOR] ")
	wantStatus(t, "no descriptor", s.send(t, &flight.FlightData{DataHeader: recorder.list[0].GetDataHeader()}),
		codes.InvalidArgument, "[BAD_REQUEST] ")
	if err := s.send(t, recorder.list...); err != nil {
		t.Errorf("an honest upload afterwards: %v", err)
	}
}

// messages collects what a writer sends.
type messages struct{ list []*flight.FlightData }

func (m *messages) Send(d *flight.FlightData) error {
	m.list = append(m.list, &flight.FlightData{
		FlightDescriptor: d.GetFlightDescriptor(),
		DataHeader:       bytes.Clone(d.GetDataHeader()), DataBody: bytes.Clone(d.GetDataBody()),
	})
	return nil
}

// send uploads messages as they are.
func (s *testServer) send(t *testing.T, list ...*flight.FlightData) error {
	t.Helper()
	stream, err := s.client.DoPut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if stream.Send(d) != nil {
			break
		}
	}
	_ = stream.CloseSend()
	_, err = rest(stream, nil)
	return err
}

// permutedRecord holds a tensor column whose description has a permutation, written as plain metadata of the field.
func permutedRecord(t *testing.T) arrow.RecordBatch {
	t.Helper()
	b := array.NewFixedSizeListBuilder(memory.DefaultAllocator, 6, arrow.PrimitiveTypes.Uint8)
	defer b.Release()
	b.Append(true)
	b.ValueBuilder().(*array.Uint8Builder).AppendValues([]byte{1, 2, 3, 4, 5, 6}, nil)
	meta := arrow.NewMetadata([]string{ipc.ExtensionTypeKeyName, ipc.ExtensionMetadataKeyName},
		[]string{"arrow.fixed_shape_tensor", `{"shape":[1,2,3],"permutation":[2,0,1]}`})
	column := b.NewArray()
	field := arrow.Field{Name: "label", Type: column.DataType(), Metadata: meta}
	return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{field}, nil), []arrow.Array{column}, 1)
}
