package schedules

import (
	"bytes"
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
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// These lie beside a schedule file whose basis has vectors, or that has a start, as in its folder.
const (
	basisFile = "basis.safetensors"
	startFile = "start.safetensors"
)

var exportSpec = command.Spec{
	Use:   "export",
	Short: "Write a schedule as a file",
	Long: `Export writes a schedule as one of two files. Import reads both.

json  everything: parameters or knots, the energy density where there is one, and where
      the schedule came from. Vectors of its basis go to basis.safetensors beside it, and
      the law that sampling starts from, where it has one, to start.safetensors.
csv   the columns label, subspace, t and g, which PutSchedule takes: label −1 where all
      labels share it. The rows are the schedule's own knots, between which it is
      log-linear, so that nothing is lost.`,
	Example: `  anisoflight schedule export --schedule digits --out digits/schedule.json
  anisoflight schedule export --schedule digits --out digits.csv`,
	Options: slices.Concat([]command.Option{
		scheduleOption,
		{Name: "out", Default: "schedule.json", Usage: "`file` to write: .json or .csv"},
	}, connect.FolderOptions),
	Run: func(ctx context.Context, e command.Env) error {
		ref := e.Get("schedule")
		out := e.Text("out")
		format, err := formatOf(e, out)
		if err != nil {
			return err
		}
		if err := command.CheckOut(out); err != nil {
			return err
		}
		return connect.WithServer(ctx, e, func(c connect.Connection) error {
			s, err := exported(ctx, c, ref.Value)
			if err != nil {
				return err
			}
			if format == ".json" {
				return writeSchedule(ctx, c, ref.Value, s, e.Out, out)
			}
			rows := s.Table()
			if err := command.WriteFile(out, func(w io.Writer) error { return schedule.WriteCSV(w, rows) }); err != nil {
				return err
			}
			fmt.Fprintf(e.Out, "%s: %d rows\n", out, len(rows))
			return nil
		})
	},
}

// formatOf returns the ending of a file's name, which says the format.
func formatOf(e command.Env, path string) (string, error) {
	format := strings.ToLower(filepath.Ext(path))
	if format != ".json" && format != ".csv" {
		return "", command.Usagef(e.Cmd, "the name of a schedule file must end in .json or .csv, got %q", path)
	}
	return format, nil
}

// exported returns a schedule with everything it holds.
func exported(ctx context.Context, c connect.Connection, ref any) (*schedule.Schedule, error) {
	file, err := c.Action(ctx, "ExportSchedule", map[string]any{"schedule": ref}, nil)
	if err != nil {
		return nil, err
	}
	return schedule.Decode(bytes.NewReader(file))
}

// writeSchedule writes the schedule file and what travels beside it.
func writeSchedule(ctx context.Context, c connect.Connection, ref any, s *schedule.Schedule, says io.Writer,
	path string,
) error {
	var beside []besideFile
	if name := s.Family().Basis; !basis.ByFormula(name) {
		vectors, err := basisOf(ctx, c, ref)
		if err != nil {
			return err
		}
		beside = append(beside, besideFile{filepath.Join(filepath.Dir(path), basisFile), "basis", vectors})
	}
	law, err := startOf(ctx, c, ref)
	if err != nil {
		return err
	}
	if law != nil {
		beside = append(beside, besideFile{filepath.Join(filepath.Dir(path), startFile), "start", law})
	}
	for _, f := range beside {
		old, err := os.ReadFile(f.path)
		if err == nil && !bytes.Equal(old, f.content) {
			return fmt.Errorf("%s holds another %s; write the schedule into a folder of its own", f.path, f.what)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := command.WriteFile(path, func(w io.Writer) error { return command.PrintJSON(w, s) }); err != nil {
		return err
	}
	fmt.Fprintf(says, "%s: %d subspaces, T = %g\n", path, s.J(), s.T())
	for _, f := range beside {
		err := command.WriteFile(f.path, func(w io.Writer) error { _, err := w.Write(f.content); return err })
		if err != nil {
			return err
		}
		fmt.Fprintf(says, "%s: its %s\n", f.path, f.what)
	}
	return nil
}

// besideFile is a file that lies beside a schedule's.
type besideFile struct {
	path, what string
	content    []byte
}

// startOf returns the file of a schedule's start, nil where it has none.
func startOf(ctx context.Context, c connect.Connection, ref any) ([]byte, error) {
	var listed struct {
		Schedules []api.ScheduleInfo `json:"schedules"`
	}
	if err := connect.Act(ctx, c, "ListSchedules", nil, nil, &listed); err != nil {
		return nil, err
	}
	for _, info := range listed.Schedules {
		if info.Name == ref && info.Start != nil {
			var file api.SchedulePart
			err := connect.Act(ctx, c, "ExportStart", map[string]any{"schedule": ref}, nil, &file)
			return file.File, err
		}
	}
	return nil, nil
}

// basisOf returns the file of a schedule's basis.
func basisOf(ctx context.Context, c connect.Connection, ref any) ([]byte, error) {
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
