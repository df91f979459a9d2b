package flight

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/wire"
)

// transport is what gRPC reads a call's messages from, behind grpc.ServerTransportStreamFromContext. gRPC itself takes
// memory for a message before anybody may say how large the messages of this call may be; read here, its length is
// known first.
type transport interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
}

// What a call without a token may send, and how long it may take for it.
const (
	maxNoTokenBytes = 64 << 10
	noTokenStall    = 10 * time.Second
)

// jsonFactor is how many bytes of memory a request may take while it is read, for each of its own.
const jsonFactor = 32

// inbox receives the messages of one call, within the bytes that one may have and the server's budget for all of them.
type inbox struct {
	call *call
	from transport
	left int // bytes of a message that was refused, which the next receipt passes over
}

// limit returns how many bytes the call's next message may have.
func (b *inbox) limit(first bool) int {
	cfg := &b.call.server.cfg
	switch {
	case b.call.who.Principal == nil:
		return maxNoTokenBytes
	case first && !streams(b.call.method):
		return cfg.MaxRequestBytes + framingBytes
	}
	return cfg.MaxMessageBytes + cfg.MaxRequestBytes // what lies between, its reader refuses
}

// receive reads one message into m.
func (b *inbox) receive(ctx context.Context, first bool, m any) error {
	if err := b.passOver(); err != nil {
		return receiveError(err)
	}
	var head [5]byte // whether it is compressed, and its length
	if err := b.from.ReadMessageHeader(head[:]); err != nil {
		return receiveError(err)
	}
	n, limit := int(binary.BigEndian.Uint32(head[1:])), b.limit(first)
	if n > limit {
		b.left = n
		return b.tooLong(n, limit)
	}
	weight := int64(n)
	if head[0] != 0 {
		weight = int64(limit)
	}
	if first { // a request
		weight *= jsonFactor
	}
	weight = min(weight, b.call.server.cfg.MaxReceivedBytes)
	if err := b.call.take(ctx, weight); err != nil {
		b.left = n
		return err
	}
	data, err := b.from.Read(n)
	if err != nil {
		return receiveError(err)
	}
	defer func() { data.Free() }()
	if head[0] != 0 {
		if data, err = unpacked(data, b.from.RecvCompress(), limit); err != nil {
			return err
		}
	}
	b.call.server.received(ctx, m, n, data.Len())
	if err := (wire.Codec{}).Unmarshal(data, m); err != nil {
		return api.Errorf(api.BadRequest, "The message is damaged: %w", err)
	}
	b.call.give(weight - min(weight, held(m, weight)))
	return nil
}

// tooLong says that a message has more bytes than its call may send.
func (b *inbox) tooLong(n, limit int) error {
	switch {
	case b.call.who.Principal == nil:
		return api.Errorf(api.TooLarge, "A request without a token may have %d bytes, got %d", limit, n)
	case !streams(b.call.method):
		return api.Errorf(api.TooLarge, "A request may have %d bytes, got %d", limit, n)
	}
	return tooLarge(int64(b.call.server.cfg.MaxMessageBytes))
}

// passOver reads and forgets what is left of a message.
func (b *inbox) passOver() error {
	const piece = 256 << 10
	for b.left > 0 {
		data, err := b.from.Read(min(b.left, piece))
		if err != nil {
			return err
		}
		b.left -= data.Len()
		data.Free()
	}
	return nil
}

// unpacked decompresses a message of at most limit bytes, and frees what it was.
func unpacked(data mem.BufferSlice, by string, limit int) (mem.BufferSlice, error) {
	defer data.Free()
	c := encoding.GetCompressor(by)
	if c == nil {
		return nil, api.Errorf(api.BadRequest, "The message is compressed by %q, which is not known here", by)
	}
	r, err := c.Decompress(data.Reader())
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "The message cannot be decompressed: %w", err)
	}
	out, err := mem.ReadAll(io.LimitReader(r, int64(limit)+1), mem.DefaultBufferPool())
	switch {
	case err != nil:
		out.Free()
		return nil, api.Errorf(api.BadRequest, "The message cannot be decompressed: %w", err)
	case out.Len() > limit:
		out.Free()
		return nil, tooLarge(int64(limit))
	}
	return out, nil
}

// received tells those who count messages, as gRPC does.
func (s *Server) received(ctx context.Context, m any, wireBytes, bytes int) {
	p := &stats.InPayload{
		Payload: m, Length: bytes, CompressedLength: wireBytes, WireLength: wireBytes + 5, RecvTime: time.Now(),
	}
	s.traffic.HandleRPC(ctx, p)
	if s.cfg.Stats != nil {
		s.cfg.Stats.HandleRPC(ctx, p)
	}
}

// receiveError makes an error of the transport what gRPC's RecvMsg returns.
func receiveError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return status.Error(codes.Canceled, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

// held returns for how many bytes a message is held once it is read: a batch for its body, until that is given back,
// and a request for what was taken, until the call ends.
func held(m any, taken int64) int64 {
	if d, ok := m.(*flight.FlightData); ok {
		return int64(len(d.GetDataBody())) + jsonFactor*int64(len(d.GetFlightDescriptor().GetCmd()))
	}
	return taken
}

// take waits until the server has room for so many bytes of the call's messages.
func (c *call) take(ctx context.Context, bytes int64) error {
	wait, cancel := context.WithTimeout(ctx, c.server.cfg.Patience)
	defer cancel()
	if err := c.server.room.Acquire(wait, bytes); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return api.Errorf(api.Busy, "The messages under way fill the %d bytes that the server has for them",
			c.server.cfg.MaxReceivedBytes).WithHint("Try again in a moment.")
	}
	c.holds.Add(bytes)
	if c.ended.Load() {
		c.give(bytes)
	}
	return nil
}

// give gives room back, at most what the call holds.
func (c *call) give(bytes int64) {
	for {
		holds := c.holds.Load()
		bytes = min(bytes, holds)
		if bytes <= 0 {
			return
		}
		if c.holds.CompareAndSwap(holds, holds-bytes) {
			c.server.room.Release(bytes)
			return
		}
	}
}

// giveAll gives back what a call that has ended still holds.
func (c *call) giveAll() {
	c.ended.Store(true)
	c.give(math.MaxInt64)
}

// giveRoom gives back the room of a batch that a context's call received.
func giveRoom(ctx context.Context, bytes int) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.give(int64(bytes))
	}
}

// transportOf returns the transport of a call's stream.
func transportOf(ctx context.Context) (transport, error) {
	t, ok := grpc.ServerTransportStreamFromContext(ctx).(transport)
	if !ok {
		return nil, errors.New("flight: this version of gRPC does not show the length of messages")
	}
	return t, nil
}
