package flight

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"
)

func cmd(text string) *flight.FlightDescriptor {
	return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(text)}
}

func path(parts ...string) *flight.FlightDescriptor {
	return &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: parts}
}

// TestInfoIsPricedAndItsTicketWorks, for a command and for a path.
func TestInfoIsPricedAndItsTicketWorks(t *testing.T) {
	s := serve(t, Config{})
	for rows, d := range map[int64]*flight.FlightDescriptor{
		7: cmd(`{"op":"Sample","rows":7}`),
		5: path("datasets", "digits"),
		// of clients that can send one component alone
		-1: path("bases/haar"),
	} {
		info, err := s.client.GetFlightInfo(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if info.GetTotalRecords() != rows || info.GetTotalBytes() <= 0 && rows >= 0 || len(info.GetEndpoint()) != 1 {
			t.Fatalf("info %v", info)
		}
		r := s.get(t.Context(), t, string(info.GetEndpoint()[0].GetTicket().GetTicket()))
		if r.err != nil || int64(len(r.indices())) != rows && rows >= 0 {
			t.Errorf("%d rows, %v", len(r.indices()), r.err)
		}
		schema, err := flight.DeserializeSchema(info.GetSchema(), memory.DefaultAllocator)
		if err != nil || !schema.Equal(r.schema) {
			t.Errorf("announced %v, got %v (%v)", schema, r.schema, err)
		}
		alone, err := s.client.GetSchema(t.Context(), d)
		if err != nil || !slices.Equal(alone.GetSchema(), info.GetSchema()) {
			t.Errorf("GetSchema differs, %v", err)
		}
	}
}

func TestInfoErrors(t *testing.T) {
	s := serve(t, Config{})
	for _, c := range []struct {
		d     *flight.FlightDescriptor
		code  codes.Code
		begin string
	}{
		{cmd(`{}`), codes.InvalidArgument, "[BAD_REQUEST] "},
		{cmd(`{"op":"Dance"}`), codes.NotFound, "[OP_NOT_FOUND] "},
		{path("datasets", "none"), codes.NotFound, "[DATASET_NOT_FOUND] "},
		{path("models", "none"), codes.NotFound, "[MODEL_NOT_FOUND] "},
		{path("schedules", "none"), codes.NotFound, "[SCHEDULE_NOT_FOUND] "},
		{path("bases", "none"), codes.NotFound, "[BASIS_NOT_FOUND] "},
		{path("runs", "none"), codes.NotFound, "[RUN_NOT_FOUND] "},
		{path("datasets/none"), codes.NotFound, "[DATASET_NOT_FOUND] "},
		{path("datasets", "huge"), codes.ResourceExhausted, "[TOO_LARGE] "},
		{path("hats", "none"), codes.NotFound, "[PATH_NOT_FOUND] "},
		{path("digits"), codes.NotFound, "[PATH_NOT_FOUND] "},
		{path("datasets/digits/0"), codes.NotFound, "[PATH_NOT_FOUND] "},
		{path(), codes.NotFound, "[PATH_NOT_FOUND] "},
		{cmd("SELECT 1"), codes.InvalidArgument, "[BAD_REQUEST] The request is not JSON. This is not Flight SQL;"},
		{cmd("{,}"), codes.InvalidArgument, "[BAD_REQUEST] The request is not JSON: "},
		{&flight.FlightDescriptor{}, codes.InvalidArgument, "[BAD_REQUEST] "},
	} {
		_, err := s.client.GetFlightInfo(t.Context(), c.d)
		wantStatus(t, c.d.String(), err, c.code, c.begin)
	}
	_, err := s.client.PollFlightInfo(t.Context(), path("datasets", "digits"))
	wantStatus(t, "PollFlightInfo", err, codes.Unimplemented, "[UNIMPLEMENTED] ")
}

func TestFlightsAreListed(t *testing.T) {
	s := serve(t, Config{})
	for criteria, want := range map[string][]string{
		"": {"datasets/digits", "bases/haar"}, "bases": {"bases/haar"},
		"runs/": nil,
	} {
		infos, err := rest(s.client.ListFlights(t.Context(), &flight.Criteria{Expression: []byte(criteria)}))
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, info := range infos {
			paths = append(paths, strings.Join(info.GetFlightDescriptor().GetPath(), "/"))
		}
		if !slices.Equal(paths, want) {
			t.Errorf("criteria %q: %v, want %v", criteria, paths, want)
		}
	}
}
