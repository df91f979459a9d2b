package schedule

import (
	"errors"
	"slices"
)

// maxSubspaces bounds a table's subspace column, so that a wrong number is an error and not an allocation.
const maxSubspaces = 64

// TableRow is one row of a schedule table: a knot of one path.
type TableRow struct {
	Label    int // class, −1 for a schedule shared by all
	Subspace int // 0 is P_1
	T, G     float64
}

// FromTable returns the schedule of a table of knots. For each label and subspace, in the order of the table, t must
// increase strictly from 0, and g must be positive and increase strictly. All paths must end at one T, within 1e-9
// relative. Labels must be all −1, or classes that each have every subspace. An *Error names the row of the table that
// breaks a rule.
//
// fam names the basis; fam.PerClass is ignored.
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

// pathOfRows returns the path through rows at; its errors name table rows.
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
