package api

// Empty is the request of the actions that need none: ServerInfo, ListModels, ListSchedules, ListBases, ListDatasets
// and ListRuns.
type Empty struct{}

// SetDefaults implements Request.
func (r *Empty) SetDefaults() {}

// Validate implements Request.
func (r *Empty) Validate() error { return nil }

// ModelName is the request of DescribeModel, UnloadModel and DeleteModel.
type ModelName struct {
	Model string `json:"model"` // name of the model; required
}

// SetDefaults implements Request.
func (r *ModelName) SetDefaults() { *r = ModelName{} }

// Validate implements Request.
func (r *ModelName) Validate() error { return need("model", r.Model) }

// Precisions lists the arithmetic that networks may have.
var Precisions = []string{"float32", "tf32", "bfloat16"}

// LoadModel reads a model folder. The folder may have appeared after the server started.
type LoadModel struct {
	Name      string `json:"name"`                                   // name to serve it under; required
	Path      string `json:"path"`                                   // relative to the models folder; default the name
	Precision string `json:"precision,omitempty" oneof:"precisions"` // default as it is loaded already, else the server's
	Replace   bool   `json:"replace,omitempty"`                      // rename the served model path to name; default false
}

// SetDefaults implements Request.
func (r *LoadModel) SetDefaults() { *r = LoadModel{} }

// Validate implements Request.
func (r *LoadModel) Validate() error {
	if r.Path == "" {
		r.Path = r.Name
	}
	return CheckName("name", r.Name)
}

// ScheduleName is the request of DeleteSchedule.
type ScheduleName struct {
	Schedule string `json:"schedule"` // name of the schedule; required
}

// SetDefaults implements Request.
func (r *ScheduleName) SetDefaults() { *r = ScheduleName{} }

// Validate implements Request.
func (r *ScheduleName) Validate() error { return need("schedule", r.Schedule) }

// BasisName is the request of DeleteBasis.
type BasisName struct {
	Basis string `json:"basis"` // name of the basis; required
}

// SetDefaults implements Request.
func (r *BasisName) SetDefaults() { *r = BasisName{} }

// Validate implements Request.
func (r *BasisName) Validate() error { return need("basis", r.Basis) }

// DatasetName is the request of DeleteDataset.
type DatasetName struct {
	Dataset string `json:"dataset"` // name of the data set; required
}

// SetDefaults implements Request.
func (r *DatasetName) SetDefaults() { *r = DatasetName{} }

// Validate implements Request.
func (r *DatasetName) Validate() error { return need("dataset", r.Dataset) }

// Dataset reads a stored data set back, in the type and layout it was uploaded in.
//
// Rows out: image fixed_shape_tensor, label int32, index int64.
type Dataset struct {
	Dataset string `json:"dataset"`         // name of the data set; required
	Offset  int    `json:"offset"`          // index of the first image; default 0
	Limit   *int   `json:"limit,omitempty"` // number of images; default all
}

// SetDefaults implements Request.
func (r *Dataset) SetDefaults() { *r = Dataset{} }

// Validate implements Request.
func (r *Dataset) Validate() error {
	err := first(need("dataset", r.Dataset), atLeast("offset", r.Offset, 0))
	if err == nil && r.Limit != nil {
		err = atLeast("limit", *r.Limit, 0)
	}
	return err
}

// Model reads the files of a model back, in rows as PutModel takes them.
//
// Rows out: bytes fixed_shape_tensor uint8 [65536], config.json and model.safetensors one after the other, the last row
// filled up. The metadata's request tells config_bytes and weights_bytes.
type Model struct {
	Model string `json:"model"` // name of the model; required
}

// SetDefaults implements Request.
func (r *Model) SetDefaults() { *r = Model{} }

// Validate implements Request.
func (r *Model) Validate() error { return need("model", r.Model) }

// Basis reads the vectors of P_1 back: of a stored basis, or of the one that a schedule has.
//
// Rows out, sorted by label: label int32 (−1 shared), vector fixed_shape_tensor float64 with dim_names ["H","W"].
type Basis struct {
	Basis    string      `json:"basis,omitempty"`   // name of a stored basis
	Schedule ScheduleRef `json:"schedule,omitzero"` // in place of basis: a schedule, whose basis is meant
}

// SetDefaults implements Request.
func (r *Basis) SetDefaults() { *r = Basis{} }

// Validate implements Request.
func (r *Basis) Validate() error {
	if (r.Basis == "") == !r.Schedule.Given() {
		return Errorf(BadRequest, "basis and schedule must not both be given, nor both be left out")
	}
	return nil
}
