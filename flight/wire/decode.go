package wire

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

var errDamaged = errors.New("wire: a FlightData is damaged")

// decode reads a FlightData as protobuf does, except that fields it does not know are forgotten. The body goes to aligned
// memory, by one copy.
func decode(message mem.BufferSlice, d *flight.FlightData) error {
	d.Reset()
	r := message.Reader()
	defer r.Close()
	for r.Remaining() > 0 {
		tag, err := binary.ReadUvarint(r)
		if err != nil {
			return errDamaged
		}
		field, kind := protowire.DecodeTag(tag)
		if field < protowire.MinValidNumber {
			return errDamaged
		}
		if kind != protowire.BytesType {
			if err := skip(r, kind); err != nil {
				return err
			}
			continue
		}
		if err := decodeBytes(r, field, d); err != nil {
			return err
		}
	}
	return nil
}

// decodeBytes reads a field that is a string of bytes. Of several the last counts.
func decodeBytes(r *mem.Reader, field protowire.Number, d *flight.FlightData) error {
	n, err := binary.ReadUvarint(r)
	if err != nil || n > uint64(r.Remaining()) {
		return errDamaged
	}
	var to []byte
	switch field {
	case dataBody:
		Recycle(d.DataBody)
		to = newBody(int(n))
		d.DataBody = to
	case dataHeader:
		to = make([]byte, n)
		d.DataHeader = to
	case dataAppMetadata:
		to = make([]byte, n)
		d.AppMetadata = to
	case dataDescriptor:
		to = make([]byte, n)
	default:
		_, err := io.CopyN(io.Discard, r, int64(n))
		return err
	}
	if _, err := io.ReadFull(r, to); err != nil {
		return errDamaged
	}
	if field != dataDescriptor {
		return nil
	}
	if d.FlightDescriptor == nil {
		d.FlightDescriptor = new(flight.FlightDescriptor)
	}
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(to, d.FlightDescriptor)
}

// skip passes over a field that is no string of bytes: none of FlightData's is.
func skip(r *mem.Reader, kind protowire.Type) error {
	n := int64(0)
	switch kind {
	case protowire.VarintType:
		if _, err := binary.ReadUvarint(r); err != nil {
			return errDamaged
		}
	case protowire.Fixed32Type:
		n = 4
	case protowire.Fixed64Type:
		n = 8
	default: // groups, which left protobuf before Flight was made
		return errDamaged
	}
	if _, err := io.CopyN(io.Discard, r, n); err != nil {
		return errDamaged
	}
	return nil
}
