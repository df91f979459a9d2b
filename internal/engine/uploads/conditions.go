package uploads

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels/graphnet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// conditionsCost is the number of bytes of memory that the upload takes for each one on the wire: the rows, the table
// and what is written.
const conditionsCost = 4

// conditions collects a table of conditions. It takes the place of the model's, which is stored as a whole.
type conditions struct {
	model *catalog.Model
	have  graphnet.Conditions
	size  int // values of a condition
	rows  map[int32][]float32
}

// Conditions opens the upload of a table of conditions.
func (u *Uploads) Conditions(_ context.Context, req api.PutConditions, in api.Schema) (*api.Upload, error) {
	m, err := u.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	c := &conditions{model: m, rows: map[int32][]float32{}}
	if net, ok := m.Net.(*graphnet.Net); ok {
		if have := net.Conditions(); have != nil {
			c.have = *have
		}
	}
	if c.have.Labels == 0 {
		return nil, api.Errorf(api.BadRequest, "The model %q takes no conditions", req.Model).
			WithHint("A network of PyTorch does that was exported with conditions=.")
	}
	if m.Path != req.Model {
		return nil, api.Errorf(api.BadRequest, "The model %q is the folder %q, and is served under another name", req.Model,
			m.Path).WithHint("Store it under its own name, with PutModel.")
	}
	want := []api.Column{{Name: "label", Type: api.Int32}, {Name: "condition", Type: api.Float32, Kind: api.Tensor}}
	if err := tables.Want(in, want, nil); err != nil {
		return nil, err
	}
	col := in.Columns[in.Index("condition")]
	if !slices.Equal(col.Shape, c.have.Shape) {
		return nil, api.Errorf(api.BadTensor, "Column \"condition\" has the shape %v, the conditions of model %q have %v",
			col.Shape, req.Model, c.have.Shape)
	}
	c.size = col.Len()
	commit := func() (int64, error) {
		labels, err := c.check()
		if err != nil {
			return 0, err
		}
		now, err := u.Catalog.Model(req.Model)
		if err != nil {
			return 0, err
		}
		if now.Version != m.Version {
			return 0, api.Errorf(api.Busy, "The model %q was replaced meanwhile", req.Model).WithHint("Send the table again.")
		}
		stored, err := m.Stored()
		if err != nil {
			return 0, err
		}
		changed, err := c.withTable(stored, labels)
		if err != nil {
			return 0, err
		}
		_, err = u.Catalog.SaveModel(req.Model, true, changed)
		return int64(len(c.rows)), err
	}
	write := func(b api.Batch) error { return c.write(in, b) }
	return u.bound(api.Upload{Write: write, Commit: commit}, in, req.Rows, u.MaxBytes/conditionsCost, conditionsCost), nil
}

// write takes the conditions of a batch, each of which has another label.
func (c *conditions) write(in api.Schema, b api.Batch) error {
	labels, err := tables.Int32s(in, b, "label", int64(len(c.rows)))
	if err != nil {
		return err
	}
	values := api.ColumnOf[float32](in, b, "condition")
	if err := tables.Finite("condition", values, c.size); err != nil {
		return err
	}
	for i, label := range labels {
		if _, twice := c.rows[label]; twice {
			return api.Errorf(api.BadTensor, "Column \"label\" holds %d twice", label)
		}
		if label < -1 {
			return api.Errorf(api.BadTensor, "Column \"label\" holds %d", label).WithHint("Labels are 0, 1, …, and -1 is none.")
		}
		c.rows[label] = slices.Clone(values[i*c.size : (i+1)*c.size])
	}
	return nil
}

// check returns the number of labels, of which every one must have come.
func (c *conditions) check() (int, error) {
	labels := len(c.rows)
	if _, none := c.rows[-1]; none {
		labels--
		if !c.have.None {
			return 0, api.Errorf(api.BadTensor, "The model %q has no row for no class", c.model.Name).
				WithHint("Export it with conditions [K, S, D] to have one.")
		}
	}
	if labels == 0 {
		return 0, api.Errorf(api.BadTensor, "There are no conditions")
	}
	for label := range int32(labels) {
		if _, ok := c.rows[label]; !ok {
			return 0, api.Errorf(api.BadTensor, "There are %d conditions, and none for label %d", labels, label)
		}
	}
	return labels, nil
}

// withTable returns a model with the table.
func (c *conditions) withTable(stored *checkpoint.Model, labels int) (*checkpoint.Model, error) {
	net, ok := stored.Net.(*graphnet.Net)
	if !ok {
		return nil, api.Errorf(api.BadRequest, "The model %q takes no conditions", c.model.Name)
	}
	if labels != c.have.Labels {
		if own := stored.Schedule; own != nil && own.Family().PerClass {
			return nil, api.Errorf(api.BadRequest,
				"The model %q has schedules of its own for %d labels, and %d conditions came", c.model.Name, c.have.Labels, labels).
				WithHint("Send as many, or replace its schedule by one that all labels share.")
		}
		if net.Shape().Labels == 0 {
			return nil, api.Errorf(api.BadTensor, "The model %q has one condition, and %d came", c.model.Name, labels)
		}
	}
	fresh, err := net.WithConditions(labels)
	if err != nil {
		return nil, badModel(err)
	}
	out := *stored
	out.Net, out.Values = fresh, slices.Clone(stored.Values)
	for i, p := range fresh.Params() {
		if p.Name != graphnet.ConditionsParam {
			continue
		}
		table := make([]float32, 0, p.Size())
		for label := range int32(labels) {
			table = append(table, c.rows[label]...)
		}
		if c.have.None {
			none, given := c.rows[-1]
			if !given { // as it was
				none = stored.Values[i][c.have.Labels*c.size:]
			}
			table = append(table, none...)
		}
		out.Values[i] = table
	}
	return &out, nil
}
