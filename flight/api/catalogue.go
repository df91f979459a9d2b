package api

// Empty is the request of actions without fields, such as ServerInfo and ListModels.
type Empty struct{}

// ModelName is the request of DescribeModel, UnloadModel and DeleteModel.
type ModelName struct {
	Model string `json:"model"` // name of the model; required
}

// Precisions lists the precisions of networks.
var Precisions = []string{"float32", "tf32", "bfloat16"}

// LoadModel reads a model folder, which may have appeared after the server started, or renames a model.
type LoadModel struct {
	Name string `json:"name" name:"new"` // name of the model and of its folder; required
	// precision of the network; default unchanged if it is loaded, otherwise the server's
	Precision string `json:"precision,omitempty" oneof:"precisions"`
	// name of a served model to rename, with its folder; it replaces a model called name; default none
	Model string `json:"model,omitempty"`
}

// ScheduleName is the request of DeleteSchedule.
type ScheduleName struct {
	Schedule string `json:"schedule"` // name of the schedule; required
}

// BasisName is the request of DeleteBasis.
type BasisName struct {
	Basis string `json:"basis"` // name of the basis; required
}

// DatasetName is the request of DeleteDataset.
type DatasetName struct {
	Dataset string `json:"dataset"` // name of the data set; required
}

// Dataset reads a data set back, in the type and layout of its upload.
//
// Rows out: image tensor, label int32, index int64.
type Dataset struct {
	Dataset string `json:"dataset"`                 // name of the data set; required
	Offset  int    `json:"offset" min:"0"`          // index of the first image; default 0
	Limit   *int   `json:"limit,omitempty" min:"0"` // number of images; default all
}

// Model reads the files of a model back, in the rows of PutModel.
//
// Rows out: bytes tensor uint8 [65536]: config.json, then model.safetensors, the last row padded. The metadata's
// request has config_bytes and weights_bytes.
type Model struct {
	Model string `json:"model"` // name of the model; required
}

// Basis reads the vectors of P_1 back, of a stored basis or of a schedule's.
//
// Rows out, sorted by label: label int32 (−1: shared), vector tensor float64 with dim_names ["H","W"].
type Basis struct {
	Basis    string      `json:"basis,omitempty"`   // name of a stored basis
	Schedule ScheduleRef `json:"schedule,omitzero"` // schedule whose basis is read, in place of basis
}

// Validate implements Request.
func (r *Basis) Validate() error {
	if (r.Basis == "") == !r.Schedule.Given() {
		return Errorf(BadRequest, "basis and schedule must not both be given, nor both be left out")
	}
	return nil
}
