package uploads

import (
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/kernels/graphnet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// conditionsUpload collects a table of conditions. It takes the place of the model's, which is stored as a whole.
type conditionsUpload struct {
	catalog *catalog.Catalog
	req     api.PutConditions
	in      api.Schema
	have    graphnet.Conditions
	size    int // values of a condition
	version int
	rows    map[int32][]float32
}

// Conditions opens the upload of a table of conditions.
func Conditions(c *catalog.Catalog, budget *Budget, req api.PutConditions, in api.Schema) (api.Upload, error) {
	m, err := c.Model(req.Model)
	if err != nil {
		return nil, err
	}
	u := &conditionsUpload{
		catalog: c, req: req, in: in, version: m.Version, rows: map[int32][]float32{},
	}
	net, ok := m.Net.(*graphnet.Net)
	if ok {
		if have := net.Conditions(); have != nil {
			u.have = *have
		}
	}
	if u.have.Labels == 0 {
		return nil, api.Errorf(api.BadRequest, "The model %q takes no conditions", req.Model).
			WithHint("A network of PyTorch does that was exported with conditions=.")
	}
	if m.Path != req.Model {
		return nil, api.Errorf(api.BadRequest, "The model %q is the folder %q, and is served under another name", req.Model,
			m.Path).WithHint("Store it under its own name, with PutModel.")
	}
	want := []api.Column{{Name: "label", Type: api.Int32}, {Name: "condition", Type: api.Float32, Kind: api.Tensor}}
	if err := input.Want(in, want, nil); err != nil {
		return nil, err
	}
	col := in.Columns[in.Index("condition")]
	if !slices.Equal(col.Shape, u.have.Shape) {
		return nil, api.Errorf(api.BadTensor, "Column \"condition\" has the shape %v, the conditions of model %q have %v",
			col.Shape, req.Model, u.have.Shape)
	}
	u.size = col.Len()
	return budget.bound(u, in, req.Rows, budget.Upload/conditionsCost, conditionsCost), nil
}

// Write implements api.Upload.
func (u *conditionsUpload) Write(b api.Batch) error {
	labels, err := input.Int32s(u.in, b, "label", int64(len(u.rows))) // each row has another label
	if err != nil {
		return err
	}
	values := api.ColumnOf[float32](u.in, b, "condition")
	n := u.size
	if err := input.Finite("condition", values, n); err != nil {
		return err
	}
	for i, label := range labels {
		if _, twice := u.rows[label]; twice {
			return api.Errorf(api.BadTensor, "Column \"label\" holds %d twice", label)
		}
		if label < -1 {
			return api.Errorf(api.BadTensor, "Column \"label\" holds %d", label).WithHint("Labels are 0, 1, …, and -1 is none.")
		}
		u.rows[label] = slices.Clone(values[i*n : (i+1)*n])
	}
	return nil
}

// check returns the number of labels, of which every one must have come.
func (u *conditionsUpload) check() (int, error) {
	labels := len(u.rows)
	if _, none := u.rows[-1]; none {
		labels--
		if !u.have.None {
			return 0, api.Errorf(api.BadTensor, "The model %q has no row for no class", u.req.Model).
				WithHint("Export it with conditions [K, S, D] to have one.")
		}
	}
	if labels == 0 {
		return 0, api.Errorf(api.BadTensor, "There are no conditions")
	}
	for label := range int32(labels) {
		if _, ok := u.rows[label]; !ok {
			return 0, api.Errorf(api.BadTensor, "There are %d conditions, and none for label %d", labels, label)
		}
	}
	return labels, nil
}

// Commit implements api.Upload.
func (u *conditionsUpload) Commit() (int64, error) {
	labels, err := u.check()
	if err != nil {
		return 0, err
	}
	m, err := u.catalog.Model(u.req.Model)
	if err != nil {
		return 0, err
	}
	if m.Version != u.version {
		return 0, api.Errorf(api.Busy, "The model %q was replaced meanwhile", u.req.Model).WithHint("Send the table again.")
	}
	if err := m.Hold(); err != nil {
		return 0, err
	}
	defer m.Release()
	stored, err := m.Stored()
	if err != nil {
		return 0, err
	}
	changed, err := u.withTable(stored, labels)
	if err != nil {
		return 0, err
	}
	if _, err := u.catalog.SaveModel(u.req.Model, true, changed); err != nil {
		return 0, err
	}
	return int64(len(u.rows)), nil
}

// withTable returns a model with the table.
func (u *conditionsUpload) withTable(stored *checkpoint.Model, labels int) (*checkpoint.Model, error) {
	net, ok := stored.Net.(*graphnet.Net)
	if !ok {
		return nil, api.Errorf(api.BadRequest, "The model %q takes no conditions", u.req.Model)
	}
	if labels != u.have.Labels {
		if own := stored.Schedule; own != nil && own.Family().PerClass {
			return nil, api.Errorf(api.BadRequest,
				"The model %q has schedules of its own for %d labels, and %d conditions came", u.req.Model, u.have.Labels, labels).
				WithHint("Send as many, or replace its schedule by one that all labels share.")
		}
		if net.Shape().Labels == 0 {
			return nil, api.Errorf(api.BadTensor, "The model %q has one condition, and %d came", u.req.Model, labels)
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
			table = append(table, u.rows[label]...)
		}
		if u.have.None {
			none, given := u.rows[-1]
			if !given { // as it was
				none = stored.Values[i][u.have.Labels*u.size:]
			}
			table = append(table, none...)
		}
		out.Values[i] = table
	}
	return &out, nil
}

// Abort implements api.Upload.
func (u *conditionsUpload) Abort() { u.rows = nil }

// conditionsCost is the number of bytes of memory that the upload takes for each one on the wire: the rows, the table
// and what is written.
const conditionsCost = 4
