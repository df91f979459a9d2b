package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Load reads the pickle b (protocols 2 to 5).
func Load(b []byte) (any, error) {
	m := machine{rest: b, memo: map[uint64]any{}, room: len(b)}
	for {
		if len(m.rest) == 0 {
			return nil, m.wrap(errors.New("ends before its STOP"))
		}
		op := m.rest[0]
		m.rest = m.rest[1:]
		if op == '.' {
			v, err := m.pop()
			return v, m.wrap(err)
		}
		if err := m.do(op); err != nil {
			return nil, m.wrap(err)
		}
	}
}

type machine struct {
	rest  []byte
	stack []any
	memo  map[uint64]any
	room  int // bytes that calls of encode may still make
}

// mark is where a tuple, list or dict begins on the stack.
type mark struct{}

var errShort = errors.New("ends in the middle")

func (m *machine) wrap(err error) error {
	if err != nil {
		return fmt.Errorf("pickle: %w", err)
	}
	return nil
}

func (m *machine) take(n uint64) ([]byte, error) {
	if n > uint64(len(m.rest)) {
		return nil, errShort
	}
	b := m.rest[:n]
	m.rest = m.rest[n:]
	return b, nil
}

// number reads an unsigned number of size bytes.
func (m *machine) number(size uint64) (uint64, error) {
	b, err := m.take(size)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint64(wide[:]), nil
}

// counted reads a number of size bytes and as many bytes as it says.
func (m *machine) counted(size uint64) (string, error) {
	n, err := m.number(size)
	if err != nil {
		return "", err
	}
	b, err := m.take(n)
	return string(b), err
}

func (m *machine) line() (string, error) {
	line, rest, ok := bytes.Cut(m.rest, []byte("\n"))
	if !ok {
		return "", errShort
	}
	m.rest = rest
	return string(line), nil
}

func (m *machine) push(v any) error {
	m.stack = append(m.stack, v)
	return nil
}

func (m *machine) pop() (any, error) {
	if len(m.stack) == 0 {
		return nil, errors.New("takes from an empty stack")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	if _, ok := v.(mark); ok {
		return nil, errors.New("takes a mark for a value")
	}
	return v, nil
}

// toMark takes what lies above the last mark, and the mark.
func (m *machine) toMark() ([]any, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, ok := m.stack[i].(mark); ok {
			items := append([]any(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return items, nil
		}
	}
	return nil, errors.New("has no mark")
}

func (m *machine) top() (any, error) {
	v, err := m.pop()
	if err == nil {
		m.stack = append(m.stack, v)
	}
	return v, err
}

// do does one instruction; pickletools names them.
func (m *machine) do(op byte) error {
	switch op {
	case 0x80: // PROTO
		v, err := m.number(1)
		if err == nil && (v < 2 || v > 5) {
			err = fmt.Errorf("has protocol %d; 2 to 5 are read", v)
		}
		return err
	case 0x95: // FRAME
		_, err := m.take(8)
		return err
	case '(': // MARK
		return m.push(mark{})
	case '0': // POP
		_, err := m.pop()
		return err
	case 'N': // NONE
		return m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		return m.push(op == 0x88)
	case 'K', 'M', 'J', 'G', 0x8a: // BININT1, BININT2, BININT, BINFLOAT, LONG1
		return m.doNumber(op)
	case 'U', 'T', 'X', 0x8c, 0x8d, 'C', 'B', 0x8e: // strings and bytes
		return m.doString(op)
	case 'q', 'r', 'h', 'j', 0x94: // BINPUT, LONG_BINPUT, BINGET, LONG_BINGET, MEMOIZE
		return m.doMemo(op)
	case ')', 't', 0x85, 0x86, 0x87: // EMPTY_TUPLE, TUPLE, TUPLE1 … TUPLE3
		return m.doTuple(op)
	case ']', 'a', 'e', '}', 's', 'u': // lists and dicts
		return m.doContainer(op)
	case 'c', 0x93, 'R', 0x81, 'b': // GLOBAL, STACK_GLOBAL, REDUCE, NEWOBJ, BUILD
		return m.doObject(op)
	}
	return fmt.Errorf("has the instruction %#x, which plain data does not need", op)
}

func (m *machine) doNumber(op byte) error {
	if op == 0x8a {
		return m.doLong()
	}
	v, err := m.number(map[byte]uint64{'K': 1, 'M': 2, 'J': 4, 'G': 8}[op])
	switch {
	case err != nil:
		return err
	case op == 'J':
		return m.push(int64(int32(v)))
	case op == 'G':
		return m.push(math.Float64frombits(bits.ReverseBytes64(v)))
	}
	return m.push(int64(v))
}

// doLong reads a number of as many bytes as it says, in two's complement.
func (m *machine) doLong() error {
	b, err := m.counted(1)
	if err != nil {
		return err
	}
	if len(b) > 8 {
		return fmt.Errorf("has a number of %d bytes", len(b))
	}
	var wide [8]byte
	copy(wide[:], b)
	unused := 8 * (8 - len(b))
	return m.push(int64(binary.LittleEndian.Uint64(wide[:])<<unused) >> unused)
}

func (m *machine) doString(op byte) error {
	size := uint64(4)
	switch op {
	case 'U', 0x8c, 'C':
		size = 1
	case 0x8d, 0x8e:
		size = 8
	}
	s, err := m.counted(size)
	if err != nil {
		return err
	}
	return m.push(s)
}

func (m *machine) doMemo(op byte) error {
	key := uint64(len(m.memo))
	if op != 0x94 {
		size := uint64(1)
		if op == 'r' || op == 'j' {
			size = 4
		}
		var err error
		if key, err = m.number(size); err != nil {
			return err
		}
	}
	if op == 'h' || op == 'j' {
		v, ok := m.memo[key]
		if !ok {
			return fmt.Errorf("recalls %d, which it has not stored", key)
		}
		return m.push(v)
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	m.memo[key] = v
	return nil
}

func (m *machine) doTuple(op byte) error {
	if op == 't' {
		items, err := m.toMark()
		if err != nil {
			return err
		}
		return m.push(Tuple(items))
	}
	n := 0
	if op != ')' {
		n = int(op-0x85) + 1
	}
	t := make(Tuple, n)
	for i := n - 1; i >= 0; i-- {
		v, err := m.pop()
		if err != nil {
			return err
		}
		t[i] = v
	}
	return m.push(t)
}

func (m *machine) doContainer(op byte) error {
	switch op {
	case ']':
		return m.push(&List{})
	case '}':
		return m.push(&Dict{Items: map[string]any{}})
	}
	var items []any
	var err error
	switch op {
	case 'e', 'u':
		items, err = m.toMark()
	default:
		n := 1
		if op == 's' {
			n = 2
		}
		items = make([]any, n)
		for i := n - 1; i >= 0 && err == nil; i-- {
			items[i], err = m.pop()
		}
	}
	if err != nil {
		return err
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	switch to := v.(type) {
	case *List:
		if op == 'a' || op == 'e' {
			to.Items = append(to.Items, items...)
			return nil
		}
	case *Dict:
		if op == 's' || op == 'u' {
			return to.set(items)
		}
	}
	return fmt.Errorf("adds to a %T", v)
}

func (d *Dict) set(items []any) error {
	if len(items)%2 != 0 {
		return errors.New("has a key without a value")
	}
	for i := 0; i < len(items); i += 2 {
		key, ok := items[i].(string)
		if !ok {
			return fmt.Errorf("has a dict with a key of type %T", items[i])
		}
		d.Items[key] = items[i+1]
	}
	return nil
}

func (m *machine) doObject(op byte) error {
	if op == 'c' {
		module, err := m.line()
		if err != nil {
			return err
		}
		name, err := m.line()
		if err != nil {
			return err
		}
		return m.push(Global{module, name})
	}
	second, err := m.pop()
	if err != nil {
		return err
	}
	first, err := m.pop()
	if err != nil {
		return err
	}
	switch op {
	case 0x93:
		module, ok1 := first.(string)
		name, ok2 := second.(string)
		if ok1 && ok2 {
			return m.push(Global{module, name})
		}
	case 'b':
		if o, ok := first.(*Object); ok {
			o.State = second
			return m.push(o)
		}
	default: // REDUCE, NEWOBJ
		f, ok1 := first.(Global)
		args, ok2 := second.(Tuple)
		if ok1 && ok2 {
			return m.call(f, args)
		}
	}
	return fmt.Errorf("makes an object of a %T and a %T", first, second)
}

// encode is how protocol 2 spells bytes: text of as many characters, to be encoded.
var encode = Global{"_codecs", "encode"}

// call writes a call down. That of encode stands for bytes, and becomes them.
func (m *machine) call(f Global, args Tuple) error {
	if f != encode {
		return m.push(&Object{Func: f, Args: args})
	}
	if len(args) != 2 || args[1] != "latin1" {
		return errors.New("encodes something else than bytes")
	}
	text, ok := args[0].(string)
	if m.room -= len(text); !ok || m.room < 0 {
		return errors.New("encodes something else than bytes")
	}
	b := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 255 {
			return errors.New("has bytes beyond 255")
		}
		b = append(b, byte(r))
	}
	return m.push(string(b))
}
