package schedule

// TableRow is one row of an uploaded schedule table.
type TableRow struct {
	Label    int // −1 shared
	Subspace int
	T, G     float64
}

// FromTable returns the schedule of an uploaded table; an *Error names the row.
func FromTable(fam Family, rows []TableRow) (*Schedule, error) {
	return nil, failf(-1, "empty table")
}

// Expand returns s spread over more rows or subspaces, as the start of a richer
// schedule.
func (s *Schedule) Expand(fam Family, labels []int, j int) (*Schedule, error) {
	return nil, failf(-1, "empty table")
}
