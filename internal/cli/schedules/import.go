package schedules

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

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
