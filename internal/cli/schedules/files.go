package schedules

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
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

json  everything: parameters or knots, the energy density if there is one, and the origin
      of the schedule. Vectors of its basis go to basis.safetensors beside it, and
      the law that sampling starts from, if it has one, to start.safetensors.
csv   the columns label, subspace, t and g, which PutSchedule takes: label −1 if all
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

// importRequest are the fields of PutSchedule and ImportSchedule.
var importRequest = []command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new schedule"},
	{
		Name: "basis",
		Usage: "`name` of its basis: of csv none (default), dct or a stored one; of json the name its vectors are " +
			"stored under",
		Otherwise: "the schedule's", OneOf: []string{"none", "dct"},
	},
	{Name: "k", Kind: command.Whole, Usage: "of csv: dimensions of P_1 per channel"},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a schedule, and a basis, of that name"},
}

var importSpec = command.Spec{
	Use:   "import",
	Short: "Store a schedule from a file",
	Long: `Import stores what export wrote, or a table of one's own: the columns t and g, and where
needed label (−1, the default: all) and subspace (from 0, which is P_1). Per label and
subspace t rises from 0 and g > 0 rises; all paths end at one T.

The vectors in basis.safetensors beside a json file are stored as a basis first. The law
in start.safetensors beside it is stored with the schedule.`,
	Example: `  anisoflight schedule import --name mine --file digits.csv
  anisoflight schedule import --name two --file two.csv --basis dct --k 16
  anisoflight schedule import --name pets --file pets/schedule.json`,
	Options: slices.Concat([]command.Option{
		{Name: "file", Required: true, Usage: "`file` to read: .json or .csv"},
	}, importRequest, connect.FolderOptions),
	Stores: true,
	Run: func(ctx context.Context, e command.Env) error {
		format, err := formatOf(e, e.Text("file"))
		if err != nil {
			return err
		}
		if format == ".json" && e.Get("k").Given {
			return command.Usagef(e.Cmd, "--k belongs to csv; a json file knows its own")
		}
		text, err := os.ReadFile(e.Text("file"))
		if err != nil {
			return err
		}
		err = connect.WithServer(ctx, e, func(c connect.Connection) error {
			if format == ".csv" {
				return importTable(ctx, e, c, text)
			}
			return importFile(ctx, e, c, text)
		})
		if err != nil {
			return fmt.Errorf("%s: %s", e.Text("file"), command.Plain(err))
		}
		fmt.Fprintf(e.Out, "%s: stored as schedule %s\n", e.Text("file"), e.Text("name"))
		return nil
	},
}

func importTable(ctx context.Context, e command.Env, c connect.Connection, text []byte) error {
	rows, err := schedule.ReadCSV(bytes.NewReader(text))
	if err != nil {
		return err
	}
	b := api.Batch{Rows: len(rows)}
	label, subspace := make([]int32, len(rows)), make([]int32, len(rows))
	t, g := make([]float64, len(rows)), make([]float64, len(rows))
	for i, r := range rows {
		label[i], subspace[i], t[i], g[i] = int32(r.Label), int32(r.Subspace), r.T, r.G
	}
	b.Cols = []any{label, subspace, t, g}
	return upload(ctx, c, "PutSchedule", e.Request(importRequest), api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "subspace", Type: api.Int32},
		{Name: "t", Type: api.Float64},
		{Name: "g", Type: api.Float64},
	}}, b)
}

func importFile(ctx context.Context, e command.Env, c connect.Connection, text []byte) error {
	fields := e.Request(importRequest)
	s, err := schedule.Decode(bytes.NewReader(text))
	if err != nil {
		return err
	}
	fields["file"] = json.RawMessage(text)
	if name := s.Family().Basis; !basis.ByFormula(name) {
		vectors, err := os.ReadFile(filepath.Join(filepath.Dir(e.Text("file")), basisFile))
		switch {
		case err == nil:
			if _, given := fields["basis"]; !given {
				fields["basis"] = e.Text("name")
			}
			if err := importBasis(ctx, c, fields, vectors); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrNotExist): // without the file, the basis is one that is stored
			return err
		}
	}
	law, err := os.ReadFile(filepath.Join(filepath.Dir(e.Text("file")), startFile))
	if err == nil {
		fields["start"] = base64.StdEncoding.EncodeToString(law)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return connect.Act(ctx, c, "ImportSchedule", fields, nil, nil)
}

// importBasis stores the vectors of a basis file under the name that the fields of the schedule's import give it.
func importBasis(ctx context.Context, c connect.Connection, fields map[string]any, file []byte) error {
	b, err := checkpoint.DecodeBasis(file)
	if err != nil {
		return err
	}
	labels := b.Classes()
	if labels == nil {
		labels = []int{basis.Shared}
	}
	var rows api.Batch
	var label []int32
	var values []float64
	for _, l := range labels {
		v, err := b.Vectors(l)
		if err != nil {
			return err
		}
		for range b.K() {
			label = append(label, int32(l))
		}
		values = append(values, v...)
	}
	rows = api.Batch{Rows: len(label), Cols: []any{label, values}}
	request := map[string]any{"name": fields["basis"]}
	if replace, ok := fields["replace"]; ok {
		request["replace"] = replace
	}
	return upload(ctx, c, "PutBasis", request, api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "vector", Type: api.Float64, Kind: api.Tensor, Shape: []int{b.H(), b.W()}, DimNames: []string{"H", "W"}},
	}}, rows)
}

// upload stores a table of one batch.
func upload(ctx context.Context, c connect.Connection, op string, fields map[string]any, in api.Schema,
	rows api.Batch,
) error {
	_, err := c.Put(ctx, op, fields, client.Input{Schema: in, Batches: slices.Values([]api.Batch{rows})})
	return err
}
