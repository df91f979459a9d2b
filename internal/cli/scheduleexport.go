package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// basisFile lies beside a schedule file whose basis has vectors, as in a model's folder.
const basisFile = "basis.safetensors"

var formatOption = option{name: "format", usage: "json, the whole schedule file, or csv, the table label,subspace,t,g (default: by the file's name)"}

var scheduleExportSpec = spec{
	use:   "export",
	short: "Write a schedule as a file",
	long: `Export writes a schedule as one of two files. Import reads both.

json  everything: parameters or knots, the energy density where there is one, and where
      the schedule came from. Vectors of its basis go to basis.safetensors beside it.
csv   the columns label, subspace, t and g, which PutSchedule takes: label −1 where all
      labels share it. The rows are the schedule's own knots, between which it is
      log-linear, so that nothing is lost; --points asks for uniform times instead.`,
	example: `  anisoflight schedule export --schedule digits --out digits/schedule.json
  anisoflight schedule export --schedule digits --format csv --points 513 --out digits.csv`,
	options: slices.Concat([]option{
		scheduleOption,
		formatOption,
		{name: "points", kind: whole, usage: "of csv: times, uniform from 0 to T (default: the knots)"},
		{name: "out", usage: "`file` to write (default: schedule.json or schedule.csv)"},
	}, folderOptions),
	run: func(ctx context.Context, e env) error {
		ref := e.get("schedule")
		out := e.text("out")
		if out == "" {
			out = "schedule." + cmp.Or(e.text("format"), "json")
		}
		format, err := formatOf(e, out)
		if err != nil {
			return err
		}
		points := e.get("points").given
		if points && format == "json" {
			return usagef(e.cmd, "--points belongs to csv; json holds the schedule itself")
		}
		return withServer(ctx, e, func(c connection) error {
			s, err := exported(ctx, c, ref.value)
			if err != nil {
				return err
			}
			if format == "json" {
				return writeSchedule(ctx, c, ref.value, s, e.out, out)
			}
			rows := s.Table()
			if points {
				table, err := evaluate(ctx, c, ref.value, e.whole("points"))
				if err != nil {
					return err
				}
				rows = table.rows()
			}
			return writeTable(e.out, out, rows)
		})
	},
}

// formatOf returns the format that is asked for, or that of the file's name.
func formatOf(e env, path string) (string, error) {
	format := e.text("format")
	if format == "" {
		format = strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	}
	if format != "json" && format != "csv" {
		return "", usagef(e.cmd, "the format of %s is neither json nor csv; say which by --format", path)
	}
	return format, nil
}

// exported returns a schedule with everything it holds.
func exported(ctx context.Context, c connection, ref any) (*schedule.Schedule, error) {
	file, err := c.Action(ctx, "ExportSchedule", map[string]any{"schedule": ref}, nil)
	if err != nil {
		return nil, err
	}
	return schedule.Decode(bytes.NewReader(file))
}

func (s scheduleTable) rows() []schedule.TableRow {
	rows := make([]schedule.TableRow, len(s.T))
	for i := range rows {
		rows[i] = schedule.TableRow{Label: int(s.Label[i]), Subspace: int(s.Subspace[i]), T: s.T[i], G: s.G[i]}
	}
	return rows
}

func writeTable(says io.Writer, path string, rows []schedule.TableRow) error {
	if err := writeFile(path, func(w io.Writer) error { return schedule.WriteCSV(w, rows) }); err != nil {
		return err
	}
	_, err := fmt.Fprintf(says, "%s: %d rows\n", path, len(rows))
	return err
}

// writeSchedule writes the schedule file and, where its basis has vectors, those beside it.
func writeSchedule(ctx context.Context, c connection, ref any, s *schedule.Schedule, says io.Writer, path string) error {
	var vectors []byte
	beside := filepath.Join(filepath.Dir(path), basisFile)
	if name := s.Family().Basis; !basis.ByFormula(name) {
		var err error
		if vectors, err = basisOf(ctx, c, ref); err != nil {
			return err
		}
		old, err := os.ReadFile(beside)
		if err == nil && !bytes.Equal(old, vectors) {
			return fmt.Errorf("%s holds another basis; write the schedule into a folder of its own", beside)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := writeFile(path, func(w io.Writer) error { return printJSON(w, s) }); err != nil {
		return err
	}
	fmt.Fprintf(says, "%s: %d subspaces, T = %g\n", path, s.J(), s.T())
	if vectors == nil {
		return nil
	}
	if err := writeFile(beside, func(w io.Writer) error { _, err := w.Write(vectors); return err }); err != nil {
		return err
	}
	_, err := fmt.Fprintf(says, "%s: its basis\n", beside)
	return err
}

// basisOf returns the file of a schedule's basis.
func basisOf(ctx context.Context, c connection, ref any) ([]byte, error) {
	s, rows, _, err := client.ReadAll(c.Get(ctx, "Basis", map[string]any{"schedule": ref}))
	if err != nil {
		return nil, err
	}
	vectors := map[int][][]float64{}
	shape := s.Columns[s.Index("vector")].Shape
	h, w := shape[0], shape[1]
	values := api.ColumnOf[float64](s, rows, "vector")
	for i, label := range api.ColumnOf[int32](s, rows, "label") {
		vectors[int(label)] = append(vectors[int(label)], values[i*h*w:(i+1)*h*w])
	}
	b, err := basis.Dense(h, w, vectors)
	if err != nil {
		return nil, err
	}
	return checkpoint.EncodeBasis(b)
}
