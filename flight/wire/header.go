package wire

import (
	"errors"
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Limits of a message's description. No request of the contract comes near them.
const (
	maxFields = 1024 // columns, their children and the pairs of text beside them
	maxDepth  = 16   // of columns within columns
)

// The places of what CheckHeader reads, in Arrow's Message.fbs and Schema.fbs.
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

// CheckHeader looks over the flatbuffer that describes an Arrow message. arrow-go makes room for as many fields as a
// description claims, and a few bytes may claim billions, directly or by naming the same field many times over;
// CheckHeader refuses descriptions beyond the limits above and damaged ones. Data bodies are not looked at.
func CheckHeader(header []byte) (err error) {
	defer func() {
		if recover() != nil { // flatbuffers panics where an offset leaves the bytes
			err = errors.New("wire: the description of a message is damaged")
		}
	}()
	message := root(header)
	kind := message.GetByteSlot(messageHeaderType, 0)
	body, ok := table(message, messageHeader)
	if !ok {
		return errors.New("wire: a message has no description")
	}
	c := counter{left: maxFields}
	switch kind {
	case headerSchema:
		return c.fields(body, schemaFields, schemaMetadata, 0)
	case headerBatch:
		return errors.Join(c.count(body, batchNodes), c.count(body, batchBuffers))
	}
	return fmt.Errorf("wire: messages of kind %d are not served", kind)
}

// root returns the table that a message is.
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

// counter bounds how much a description may claim in all.
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

// fields counts a vector of fields, what is inside them, and the metadata beside it.
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
