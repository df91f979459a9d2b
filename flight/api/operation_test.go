package api

import (
	"reflect"
	"strings"
	"testing"
)

// A body that names another operation than is called is a mistake.
func TestTheBodyNamesWhatIsCalled(t *testing.T) {
	for body, want := range map[string]string{
		`{"op":"Sample","model":"m"}`: `[BAD_REQUEST] op must be "DescribeModel", which is called, got "Sample". ` +
			`Leave it out, or call the other operation.`,
		`{"op":3,"model":"m"}`:               `[BAD_REQUEST] op must be "DescribeModel", which is called, got 3.`,
		`{"op":"","model":"m"}`:              `[BAD_REQUEST] op must be "DescribeModel", which is called, got "".`,
		`{"op":"DescribeModel","model":"m"}`: "",
		`{"op":null,"model":"m"}`:            "",
		`{"model":"m"}`:                      "",
	} {
		_, err := Operations().Call(ByAction, "DescribeModel", []byte(body))
		if (want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// Clients of Flight and of Flight SQL take UNIMPLEMENTED for an answer, and nothing else.
func TestStandardActionsAreUnimplemented(t *testing.T) {
	for _, name := range []string{
		"CancelFlightInfo", "RenewFlightEndpoint", "SetSessionOptions", "GetSessionOptions", "CloseSession",
		"CreatePreparedStatement",
	} {
		if _, err := Operations().Find(ByAction, name); ErrorOf(err).code() != Unimplemented {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Operations().Find(ByGet, name); ErrorOf(err).code() != OpNotFound {
			t.Errorf("%s as a ticket: %v", name, err)
		}
	}
}

func TestCallFindsByWay(t *testing.T) {
	call, err := Operations().Call(ByGet, "Dataset", []byte(`{"op":"Dataset","dataset":"d"}`))
	if err != nil || call.Op.Name != "Dataset" || call.Request.(*Dataset).Dataset != "d" {
		t.Errorf("%+v, %v", call, err)
	}
	for name, way := range map[string]Way{
		"Dataset": ByAction, "ServerInfo": ByGet, "Denoise": ByGet,
		"Dance": ByExchange,
	} {
		if _, err := Operations().Call(way, name, nil); ErrorOf(err).code() != OpNotFound {
			t.Errorf("%s as an %s: %v", name, way, err)
		}
	}
}

// What 0.1 had says what to do now.
func TestWhatIsGoneSaysWhatToDo(t *testing.T) {
	_, bench := Operations().Call(ByGet, "BenchSchedule", []byte(`{"dataset":"d","nfe":[5]}`))
	_, advise := Operations().Call(ByAction, "Advise", []byte(`{"dataset":"d"}`))
	for want, err := range map[string]error{
		"[OP_NOT_FOUND] BenchSchedule is gone since 0.1. MakeSchedule's summary": bench,
		"[OP_NOT_FOUND] Advise is gone since 0.1. anisoflight data inspect":      advise,
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	err := decode([]byte(`{"name":"s","kind":"gaussian","dataset":"d","solver":"ab","nfe":3}`), new(MakeSchedule))
	if want := "[BAD_REQUEST] The kind gaussian is gone since 0.1. MakePlan"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A field of another kind of schedule is none.
func TestForeignFieldsOfScheduleKinds(t *testing.T) {
	for body, want := range map[string]string{
		`{"name":"s","kind":"cosine","nfe":3}`: `[BAD_REQUEST] nfe is not a field here. Known: T, g0, knots, name, replace.`,
		`{"name":"s"}`:                         `[BAD_REQUEST] kind is missing.`,
	} {
		if err := decode([]byte(body), new(MakeSchedule)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

func TestAnUnknownOperationIsAskedFor(t *testing.T) {
	for name, want := range map[string]string{
		"Sampel": `There is no action "Sampel". Did you mean "Sample"? docs/wire.md lists them, and ListActions the actions.`,
		"Sing":   `There is no action "Sing". docs/wire.md lists them, and ListActions the actions.`,
	} {
		_, err := Operations().Find(ByAction, name)
		if got := ErrorOf(err).Error(); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A table of numbers needs no column of integers, and may have no rows.
func TestRowsBatch(t *testing.T) {
	type row struct {
		A float64 `json:"a"`
		B float32 `json:"b"`
	}
	want := Batch{Rows: 2, Cols: []any{[]float64{1, 3}, []float32{2, 4}}}
	if got := *RowsBatch([]row{{1, 2}, {3, 4}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := *RowsBatch([]row{}); !reflect.DeepEqual(got, Batch{Cols: []any{[]float64{}, []float32{}}}) {
		t.Errorf("without rows: %+v", got)
	}
}
