package schedule

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
)

// maxSubspaces bounds a table's subspace column, so that a stray number is an error and not an allocation.
const maxSubspaces = 64

// TableRow is one row of a schedule table: a knot of one path.
type TableRow struct {
	Label    int // class, −1 for a schedule shared by all
	Subspace int // 0 is P_1
	T, G     float64
}

// FromTable returns the schedule of a table of knots, wherever the user puts them. Per (label, subspace), in the order
// of the table, t is strictly increasing from 0 and g positive and strictly increasing; all paths end at one T and one
// g(T) within 1e-9 relative; labels are all −1, or any classes, and each has every subspace. An *Error names the row of
// the table that breaks a rule.
//
// The family names the basis; whether it is per class is what the table says.
func FromTable(fam Family, rows []TableRow) (*Schedule, error) {
	if len(rows) == 0 {
		return nil, failf(-1, "the table is empty")
	}
	knots := map[[2]int][]int{} // (label, subspace) → rows
	subspaces := 0
	var labels []int // the distinct ones
	for i, r := range rows {
		switch {
		case r.Label < -1:
			return nil, failf(i, "label must be −1 (shared) or a class from 0, got %d", r.Label)
		case (r.Label < 0) != (rows[0].Label < 0):
			return nil, failf(i, "label must be −1 in all rows (shared) or in none, got %d after %d", r.Label, rows[0].Label)
		case r.Subspace < 0 || r.Subspace >= maxSubspaces:
			return nil, failf(i, "subspace must lie in 0 … %d, got %d", maxSubspaces-1, r.Subspace)
		}
		key := [2]int{r.Label, r.Subspace}
		knots[key] = append(knots[key], i)
		subspaces = max(subspaces, r.Subspace+1)
		labels = append(labels, r.Label)
	}
	slices.Sort(labels)
	labels = slices.Compact(labels)
	fam.PerClass = labels[0] >= 0
	if err := fam.check(subspaces); err != nil {
		return nil, err
	}
	paths := make([][]*Path, len(labels))
	first := lastRow(rows, labels[0], 0)
	for r, label := range labels {
		for j := range subspaces {
			at := knots[[2]int{label, j}]
			if at == nil {
				return nil, failf(lastRow(rows, label, -1),
					"every label must have every subspace 0 … %d, got none for subspace %d of label %d", subspaces-1, j, label)
			}
			p, err := pathOfRows(rows, at)
			if err != nil {
				return nil, err
			}
			paths[r] = append(paths[r], p)
			last, top := rows[at[len(at)-1]], paths[0][0]
			if !sameEnd(last.T, top.T()) {
				return nil, failf(at[len(at)-1], "all paths must end at one T, got t = %v after t = %v (row %d)", last.T, top.T(),
					first)
			}
		}
	}
	if !fam.PerClass {
		labels = nil
	}
	return New(fam, labels, paths)
}

// pathOfRows returns the path through the given rows; its errors name table rows.
func pathOfRows(rows []TableRow, at []int) (*Path, error) {
	tau, g := make([]float64, len(at)), make([]float64, len(at))
	for k, i := range at {
		tau[k], g[k] = rows[i].T, rows[i].G
	}
	p, err := NewPath(tau, g)
	var bad *Error
	if errors.As(err, &bad) && bad.Row >= 0 {
		return nil, &Error{Row: at[bad.Row], Msg: bad.Msg}
	}
	return p, err
}

// lastRow returns the index of the last row of a label and subspace (−1: any), or −1.
func lastRow(rows []TableRow, label, subspace int) int {
	for i, r := range slices.Backward(rows) {
		if r.Label == label && (subspace < 0 || r.Subspace == subspace) {
			return i
		}
	}
	return -1
}

// Table returns the knots of every path, sorted by label, subspace and time. FromTable makes the same paths of it.
func (s *Schedule) Table() []TableRow {
	labels := s.Labels()
	if labels == nil {
		labels = []int{-1}
	}
	var rows []TableRow
	for _, label := range slices.Sorted(slices.Values(labels)) {
		r, _ := s.Row(label) // one of its own
		for j, p := range s.paths[r] {
			for k, t := range p.tau {
				rows = append(rows, TableRow{Label: label, Subspace: j, T: t, G: p.g[k]})
			}
		}
	}
	return rows
}

// tableColumns are the columns of a schedule table as text.
var tableColumns = []string{"label", "subspace", "t", "g"}

// WriteCSV writes a table under the head label,subspace,t,g, with as many digits as ReadCSV needs to read the same
// numbers.
func WriteCSV(w io.Writer, rows []TableRow) error {
	out := csv.NewWriter(w)
	if err := out.Write(tableColumns); err != nil {
		return err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, r := range rows {
		if err := out.Write([]string{strconv.Itoa(r.Label), strconv.Itoa(r.Subspace), number(r.T), number(r.G)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// ReadCSV reads a table. Its first line names the columns, in any order: t and g, and label (default −1) and subspace
// (default 0) where they are needed; others are passed over. An *Error's Row counts the lines below the head from 0, as
// FromTable does; failures of r itself are passed on.
func ReadCSV(r io.Reader) ([]TableRow, error) {
	in := csv.NewReader(r)
	in.TrimLeadingSpace = true
	in.ReuseRecord = true
	head, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, failf(-1, "the table is empty; its first line names the columns label, subspace, t and g")
	}
	if err != nil {
		return nil, tableError(-1, err)
	}
	var at [4]int
	for i, name := range tableColumns {
		at[i] = slices.Index(head, name)
		if at[i] < 0 && i >= 2 {
			return nil, failf(-1, "the table has no column %q; its first line names the columns label, subspace, t and g", name)
		}
	}
	var rows []TableRow
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, tableError(len(rows), err)
		}
		row, err := tableRow(record, at, len(rows))
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}

// tableRow reads the fields of line i that are at these places.
func tableRow(record []string, at [4]int, i int) (TableRow, error) {
	row := TableRow{Label: -1}
	for c, whole := range []*int{&row.Label, &row.Subspace} {
		if at[c] < 0 {
			continue
		}
		x, err := strconv.ParseInt(record[at[c]], 10, 32)
		if err != nil {
			return row, failf(i, "%s must be a whole number, got %q", tableColumns[c], record[at[c]])
		}
		*whole = int(x)
	}
	for c, number := range []*float64{&row.T, &row.G} {
		text := record[at[c+2]]
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return row, failf(i, "%s must be a number, got %q", tableColumns[c+2], text)
		}
		*number = x
	}
	return row, nil
}

// tableError reports text that is no CSV from a reader that fails.
func tableError(row int, err error) error {
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return failf(row, "line %d is not CSV: %v", bad.Line, bad.Err)
	}
	return err
}
