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

var errDamaged = errors.New("wire: a message is damaged")

// decodeData decodes a FlightData. It copies the body once, to aligned memory, and drops unknown fields. If a field
// occurs several times, the last one counts, except that descriptors are merged, as in protobuf.
func decodeData(message mem.BufferSlice, d *flight.FlightData) error {
	d.Reset()
	return fields(message, func(r *mem.Reader, field protowire.Number, n int) (err error) {
		switch field {
		case dataBody:
			Recycle(d.DataBody)
			d.DataBody, err = fill(newBody(n), r)
		case dataHeader:
			d.DataHeader, err = fill(make([]byte, n), r)
		case dataAppMetadata:
			d.AppMetadata, err = fill(make([]byte, n), r)
		case dataDescriptor:
			var text []byte
			if text, err = fill(make([]byte, n), r); err != nil {
				return err
			}
			if d.FlightDescriptor == nil {
				d.FlightDescriptor = new(flight.FlightDescriptor)
			}
			err = proto.UnmarshalOptions{Merge: true}.Unmarshal(text, d.FlightDescriptor)
		default:
			err = drop(r, n)
		}
		return err
	})
}

// decodeResult decodes a Result likewise. Its body begins in memory so that the bodies within it that Stream has
// aligned are aligned.
func decodeResult(message mem.BufferSlice, result *flight.Result) error {
	const shift = Alignment - resultResidue
	result.Reset()
	return fields(message, func(r *mem.Reader, field protowire.Number, n int) (err error) {
		if field != resultBody {
			return drop(r, n)
		}
		result.Body, err = fill(newBody(n + shift)[shift:], r)
		return err
	})
}

// fields calls take for each field of a message that is a string of bytes. take reads its n bytes. Messages with tables
// have no other fields; fields drops unknown ones.
func fields(message mem.BufferSlice, take func(r *mem.Reader, field protowire.Number, n int) error) error {
	r := message.Reader()
	defer r.Close()
	for r.Remaining() > 0 {
		tag, err := binary.ReadUvarint(r)
		if err != nil {
			return errDamaged
		}
		field, kind := protowire.DecodeTag(tag)
		if field < protowire.MinValidNumber || field > protowire.MaxValidNumber {
			return errDamaged
		}
		if kind != protowire.BytesType {
			if err := skip(r, kind); err != nil {
				return err
			}
			continue
		}
		n, err := binary.ReadUvarint(r)
		if err != nil || n > uint64(r.Remaining()) {
			return errDamaged
		}
		if err := take(r, field, int(n)); err != nil {
			return err
		}
	}
	return nil
}

// fill overwrites the whole of to.
func fill(to []byte, r *mem.Reader) ([]byte, error) {
	if _, err := io.ReadFull(r, to); err != nil {
		return nil, errDamaged
	}
	return to, nil
}

// drop reads and drops n bytes.
func drop(r *mem.Reader, n int) error {
	if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
		return errDamaged
	}
	return nil
}

// skip reads and drops a field that is not a string of bytes.
func skip(r *mem.Reader, kind protowire.Type) error {
	switch kind {
	case protowire.VarintType:
		if _, err := binary.ReadUvarint(r); err != nil {
			return errDamaged
		}
		return nil
	case protowire.Fixed32Type:
		return drop(r, 4)
	case protowire.Fixed64Type:
		return drop(r, 8)
	}
	return errDamaged // groups: protobuf removed them before Flight existed
}
