package schedule

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
)

// tableColumns are the columns of a schedule table as text.
var tableColumns = []string{"label", "subspace", "t", "g"}

// WriteCSV writes a table under the head label,subspace,t,g, with as many digits as
// ReadCSV needs to read the same numbers.
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

// ReadCSV reads a table. Its first line names the columns, in any order: t and g, and
// label (default −1) and subspace (default 0) where they are needed; others are passed
// over. An *Error's Row counts the lines below the head from 0, as FromTable does;
// failures of r itself are passed on.
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
