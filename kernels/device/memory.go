package device

import (
	"context"
	"reflect"
)

// Memory is what a compiled program needs on the device, in bytes, as its compiler
// counts it.
type Memory struct {
	Arguments int64 `json:"arguments"`
	Outputs   int64 `json:"outputs"`
	Aliased   int64 `json:"aliased"` // of the outputs, what lies in the memory of donated arguments
	Temporary int64 `json:"temporary"`
}

// Total returns the most that is in use at once.
func (m Memory) Total() int64 { return m.Arguments + m.Outputs - m.Aliased + m.Temporary }

// Memory returns what the program needs; ok is false where the backend does not tell.
func (p *Program) Memory(ctx context.Context) (m Memory, ok bool, err error) {
	if err := p.dev.enter(); err != nil {
		return m, false, err
	}
	defer p.dev.leave()
	exe, err := p.dev.programs.acquire(ctx, p)
	if err != nil {
		return m, false, err
	}
	defer exe.release()
	// gomlx keeps what PJRT reports in unexported fields of its XLA executable.
	v := reflect.ValueOf(exe.exec)
	for _, field := range []string{"exec", "OnDeviceMemoryUsageStats"} {
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return m, false, nil
		}
		if v = v.FieldByName(field); !v.IsValid() {
			return m, false, nil
		}
	}
	for field, dst := range map[string]*int64{
		"Inputs": &m.Arguments, "Outputs": &m.Outputs, "Aliases": &m.Aliased, "Temporary": &m.Temporary,
	} {
		*dst = v.FieldByName(field).Int()
	}
	return m, m.Total() > 0, nil
}
