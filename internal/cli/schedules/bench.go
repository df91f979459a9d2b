package schedules

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// benchRequest are the fields of BenchSchedule.
var benchRequest = connect.Without(connect.Fields(new(api.BenchSchedule)), "start")

var benchSpec = command.Spec{
	Use:   "bench",
	Short: "Run solvers on schedules on a data set's own Gaussian, in closed form",
	Long: `Bench replaces the data by the normal law of its mean and spectrum, on which a
sampler's output is known exactly: no model, no samples, no noise. The table has its
squared 2-Wasserstein distance to that law over the law's total variance, in all and by
subspace, and how much of it is the shift that comes of starting from noise without the
data's mean, which no solver can help.`,
	Example: `  anisoflight schedule bench --dataset digits --nfe 5,9,17 --solvers heun,dpmpp2m
  anisoflight schedule bench --dataset digits --schedules edm,digits-5 --nfe 5 --basis dct`,
	Options: slices.Concat(benchRequest, connect.FolderOptions),
	JSON:    true,
	Run: func(ctx context.Context, e command.Env) error {
		table := benchTable{request: e.Request(benchRequest)}
		err := connect.Collect(ctx, e, "BenchSchedule", table.request, "measuring",
			func(m client.Message) { table.take(m.Schema, m.Batch) })
		if err != nil {
			return err
		}
		return e.Show(table.rows, table.print)
	},
}

// benchTable is the rows of BenchSchedule with the names of the request.
type benchTable struct {
	request map[string]any
	rows    []benchRow
}

type benchRow struct {
	Schedule any     `json:"schedule"`
	Solver   any     `json:"solver"`
	NFE      int32   `json:"nfe"`
	Steps    int32   `json:"steps"`
	Label    int32   `json:"label"`
	Subspace int32   `json:"subspace"`
	Dims     int32   `json:"dims"`
	Variance float64 `json:"variance"`
	W2       float64 `json:"w2_squared"`
	Spread   float64 `json:"spread"`
	Shift    float64 `json:"shift"`
	Noise    float64 `json:"noise"`
}

func (b *benchTable) take(s api.Schema, batch api.Batch) {
	whole := func(name string) []int32 { return api.ColumnOf[int32](s, batch, name) }
	numbers := func(name string) []float64 { return api.ColumnOf[float64](s, batch, name) }
	for i := range batch.Rows {
		b.rows = append(b.rows, benchRow{
			Schedule: entry(b.request["schedules"], int(whole("schedule")[i]), "edm"),
			Solver:   entry(b.request["solvers"], int(whole("solver")[i]), "heun"),
			NFE:      whole("nfe")[i], Steps: whole("steps")[i], Label: whole("label")[i], Subspace: whole("subspace")[i],
			Dims:     whole("dims")[i],
			Variance: numbers("variance")[i], W2: numbers("w2_squared")[i], Spread: numbers("spread")[i],
			Shift: numbers("shift")[i], Noise: numbers("noise")[i],
		})
	}
}

// entry returns what stands at a position of a request's list, or the default of a list left out.
func entry(list any, at int, def string) any {
	if l, ok := list.([]any); ok && at < len(l) {
		return l[at]
	}
	return def
}

func (b *benchTable) print(w io.Writer) error {
	t := command.NewTable(w, "SCHEDULE\tSOLVER\tNFE\tSTEPS\tCLASS\tSUBSPACE\tDIMS\tVARIANCE\tW2²\tOF WHICH SHIFT")
	for _, r := range b.rows {
		class, subspace := "all", "all"
		if r.Label >= 0 {
			class = fmt.Sprint(r.Label)
		}
		if r.Subspace >= 0 {
			subspace = fmt.Sprint(r.Subspace)
		}
		fmt.Fprintf(t, "%v\t%v\t%d\t%d\t%s\t%s\t%d\t%.3g %%\t%.3e\t%.3e\n",
			r.Schedule, r.Solver, r.NFE, r.Steps, class, subspace, r.Dims, 100*r.Variance, r.W2, r.Shift)
	}
	return t.Flush()
}
