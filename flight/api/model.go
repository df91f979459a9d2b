package api

// PartBytes is how many bytes of a model folder's files a row holds, of PutModel and of Model.
const PartBytes = 1 << 16

// PutModel uploads a model folder: its two files one after the other, config.json and model.safetensors, cut into rows
// of PartBytes bytes, the last filled up with anything.
//
// Rows in: bytes fixed_shape_tensor uint8 [PartBytes].
type PutModel struct {
	Name         string `json:"name"`
	ConfigBytes  int64  `json:"config_bytes"`
	WeightsBytes int64  `json:"weights_bytes"`
	Rows         int64  `json:"rows,omitempty"` // as of PutDataset
	Replace      bool   `json:"replace"`
}

// SetDefaults implements Request.
func (r *PutModel) SetDefaults() { *r = PutModel{} }

// Validate implements Request.
func (r *PutModel) Validate() error {
	if r.ConfigBytes < 1 || r.WeightsBytes < 1 {
		return first(CheckName("name", r.Name), Errorf(BadRequest,
			"config_bytes and weights_bytes must be the sizes of config.json and model.safetensors, got %d and %d",
			r.ConfigBytes, r.WeightsBytes))
	}
	return first(CheckName("name", r.Name), checkRows(r.Rows))
}

// Model reads the files of a model back, in rows as PutModel takes them. The metadata's request tells config_bytes and
// weights_bytes.
type Model struct {
	Model string `json:"model"`
}

// SetDefaults implements Request.
func (r *Model) SetDefaults() { *r = Model{} }

// Validate implements Request.
func (r *Model) Validate() error { return need("model", r.Model) }
