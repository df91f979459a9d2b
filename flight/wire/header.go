package wire

import (
	"errors"
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Limits of a header, far above every request of the contract.
const (
	maxFields = 1024 // columns, their children and their pairs of metadata
	maxDepth  = 16   // nesting of columns
)

// Slots of Arrow's Message.fbs and Schema.fbs.
const (
	messageHeaderType = 6
	messageHeader     = 8
	schemaFields      = 6
	schemaMetadata    = 8
	fieldChildren     = 14
	fieldMetadata     = 16
	batchNodes        = 6
	batchBuffers      = 8

	headerSchema = 1
	headerBatch  = 3
)

// CheckHeader checks the header of an Arrow message, a flatbuffer. It refuses damaged headers, and those beyond the
// limits above: a few bytes can claim billions of fields, for which arrow-go would allocate memory, for example by
// naming the same field many times. It does not check the body.
func CheckHeader(header []byte) (err error) {
	defer func() {
		if recover() != nil { // flatbuffers panics if an offset is out of range
			err = errors.New("wire: the header of a message is damaged")
		}
	}()
	message := root(header)
	kind := message.GetByteSlot(messageHeaderType, 0)
	body, ok := table(message, messageHeader)
	if !ok {
		return errors.New("wire: a message has no header")
	}
	c := counter{left: maxFields}
	switch kind {
	case headerSchema:
		return c.fields(body, schemaFields, schemaMetadata, 0)
	case headerBatch:
		return errors.Join(c.count(body, batchNodes), c.count(body, batchBuffers))
	}
	return fmt.Errorf("wire: messages of kind %d are not supported", kind)
}

// root returns the root table of a header.
func root(header []byte) flatbuffers.Table {
	return flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
}

// table returns the table that a slot of t refers to.
func table(t flatbuffers.Table, slot flatbuffers.VOffsetT) (flatbuffers.Table, bool) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return flatbuffers.Table{}, false
	}
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(o + t.Pos)}, true
}

// counter counts the entries that a header may still claim.
type counter struct{ left int }

// count counts the entries of a vector.
func (c *counter) count(t flatbuffers.Table, slot flatbuffers.VOffsetT) error {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	n := t.VectorLen(o)
	if n < 0 || n > c.left {
		return fmt.Errorf("wire: a message claims more than %d fields", maxFields)
	}
	c.left -= n
	return nil
}

// fields counts a vector of fields, their children, and the metadata of t.
func (c *counter) fields(t flatbuffers.Table, fields, metadata flatbuffers.VOffsetT, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("wire: columns are nested deeper than %d", maxDepth)
	}
	if err := errors.Join(c.count(t, fields), c.count(t, metadata)); err != nil {
		return err
	}
	o := flatbuffers.UOffsetT(t.Offset(fields))
	if o == 0 {
		return nil
	}
	start := t.Vector(o)
	for i := range t.VectorLen(o) {
		field := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(start + flatbuffers.UOffsetT(i)*flatbuffers.SizeUOffsetT)}
		if err := c.fields(field, fieldChildren, fieldMetadata, depth+1); err != nil {
			return err
		}
	}
	return nil
}
