package schedules

import (
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/train/schedulecheck"
)

// The table of check has a line for each comparison, and says which failed.
func TestCheckTable(t *testing.T) {
	report := schedulecheck.Report{Samples: 64, FalseAlarm: 1e-4, Rows: []schedulecheck.Row{
		{Name: "full", Deviation: 1e-6, Bound: 1e-4, OK: true},
		{Name: "explicit", Deviation: 7.5, Bound: 4, Statistical: true},
		{Name: "backprop", Deviation: 1.5, Bound: 4, Statistical: true, OK: true},
	}}
	var table strings.Builder
	if err := printCheck(&table, &report); err != nil {
		t.Fatal(err)
	}
	if got := table.String(); strings.Count(got, "\n") != len(report.Rows)+2 || strings.Count(got, "FAIL\n") != 1 ||
		strings.Count(got, "ok\n") != len(report.Rows)-1 || !strings.Contains(got, "explicit") {
		t.Errorf("table\n%s", got)
	}
}
