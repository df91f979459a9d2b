package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/compare"
)

// compareTable prints rows for people.
func compareTable(w io.Writer, rows []compare.Row) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SCHEDULE\tGRID\tSOLVER\tNFE\tODE ERROR\tFRECHET\tS/1000")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t", r.Schedule, r.Grid, r.Solver)
		if r.Err != nil {
			fmt.Fprintf(t, "%d\t-\t-\t-  %s\n", r.NFE, plain(r.Err)) // aligned like the others, its last cell apart
			continue
		}
		frechet := "-"
		if r.Frechet != nil {
			frechet = fmt.Sprintf("%.4g ± %.2g", r.Frechet.Mean, r.Frechet.Half())
		}
		fmt.Fprintf(t, "%d\t%.4g\t%s\t%.3g\n", r.Evaluations, r.ODEError, frechet, r.Seconds)
	}
	return t.Flush()
}

// compareRow is a row for programs; what was not measured is null.
type compareRow struct {
	Schedule    string   `json:"schedule"`
	Grid        string   `json:"grid"`
	Solver      string   `json:"solver"`
	NFE         int      `json:"nfe"`
	Evaluations *int     `json:"evaluations"`
	ODEError    *float64 `json:"ode_error"`
	Frechet     *float64 `json:"frechet"`
	FrechetMin  *float64 `json:"frechet_min"`
	FrechetMax  *float64 `json:"frechet_max"`
	Spread      *float64 `json:"frechet_spread"`
	Seconds     *float64 `json:"seconds"`
	Code        string   `json:"code"`
	Message     string   `json:"message"`
}

func compareJSON(rows []compare.Row) []compareRow {
	out := make([]compareRow, len(rows))
	for i, r := range rows {
		out[i] = compareRow{Schedule: r.Schedule, Grid: r.Grid, Solver: r.Solver, NFE: r.NFE}
		if r.Err != nil {
			out[i].Code, out[i].Message = string(api.BadRequest), plain(r.Err)
			continue
		}
		out[i].Evaluations, out[i].ODEError, out[i].Seconds = &r.Evaluations, &r.ODEError, &r.Seconds
		if f := r.Frechet; f != nil {
			half := f.Half()
			out[i].Frechet, out[i].FrechetMin, out[i].FrechetMax, out[i].Spread = &f.Mean, &f.Min, &f.Max, &half
		}
	}
	return out
}

// compareCSV writes the columns of the Python package's compare.
func compareCSV(w io.Writer, rows []compare.Row) error {
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	c := csv.NewWriter(w)
	head := "schedule grid solver nfe evaluations ode_error frechet frechet_min frechet_max frechet_spread seconds code message"
	if err := c.Write(strings.Fields(head)); err != nil {
		return err
	}
	for _, r := range compareJSON(rows) {
		evaluations := ""
		if r.Evaluations != nil {
			evaluations = strconv.Itoa(*r.Evaluations)
		}
		if err := c.Write([]string{r.Schedule, r.Grid, r.Solver, strconv.Itoa(r.NFE), evaluations, number(r.ODEError), number(r.Frechet),
			number(r.FrechetMin), number(r.FrechetMax), number(r.Spread), number(r.Seconds), r.Code, r.Message}); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
