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
	Model string `json:"model"`
}

// SetDefaults implements Request.
func (r *ModelName) SetDefaults() { *r = ModelName{} }

// Validate implements Request.
func (r *ModelName) Validate() error { return need("model", r.Model) }

// Precisions lists the arithmetic that networks may have.
var Precisions = []string{"float32", "tf32", "bfloat16"}

// LoadModel reads a model folder. The folder may have appeared after the server started.
type LoadModel struct {
	Name string `json:"name"`
	Path string `json:"path"` // relative to the models folder; default: the name
	// Precision is float32, tf32 or bfloat16; default: as it is loaded already, else the server's.
	Precision string `json:"precision,omitempty"`
}

// SetDefaults implements Request.
func (r *LoadModel) SetDefaults() { *r = LoadModel{} }

// Validate implements Request.
func (r *LoadModel) Validate() error {
	if r.Path == "" {
		r.Path = r.Name
	}
	if r.Precision != "" {
		if err := oneOf("precision", r.Precision, Precisions...); err != nil {
			return err
		}
	}
	return CheckName("name", r.Name)
}

// ScheduleName is the request of DeleteSchedule.
type ScheduleName struct {
	Schedule string `json:"schedule"`
}

// SetDefaults implements Request.
func (r *ScheduleName) SetDefaults() { *r = ScheduleName{} }

// Validate implements Request.
func (r *ScheduleName) Validate() error { return need("schedule", r.Schedule) }

// BasisName is the request of DeleteBasis.
type BasisName struct {
	Basis string `json:"basis"`
}

// SetDefaults implements Request.
func (r *BasisName) SetDefaults() { *r = BasisName{} }

// Validate implements Request.
func (r *BasisName) Validate() error { return need("basis", r.Basis) }

// DatasetName is the request of DeleteDataset.
type DatasetName struct {
	Dataset string `json:"dataset"`
}

// SetDefaults implements Request.
func (r *DatasetName) SetDefaults() { *r = DatasetName{} }

// Validate implements Request.
func (r *DatasetName) Validate() error { return need("dataset", r.Dataset) }

// Dataset reads a stored data set back, in the type and layout it was uploaded in.
//
// Rows out: image fixed_shape_tensor, label int32, index int64.
type Dataset struct {
	Dataset string `json:"dataset"`
	Offset  int    `json:"offset"`
	Limit   int    `json:"limit"` // default: all
}

// SetDefaults implements Request.
func (r *Dataset) SetDefaults() { *r = Dataset{Limit: unset} }

// Validate implements Request.
func (r *Dataset) Validate() error {
	if r.Limit == unset {
		r.Limit = 1<<63 - 1
	}
	return first(need("dataset", r.Dataset), atLeast("offset", r.Offset, 0), atLeast("limit", r.Limit, 0))
}
