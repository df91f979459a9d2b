package checkpoint

// The files of a model folder.
const (
	configFile   = "config.json"
	weightsFile  = "model.safetensors"
	scheduleFile = "schedule.json"
	basisFile    = "basis.safetensors"
)

// The files of a run folder, beside those of a model.
const (
	runFile     = "run.json"
	stateFile   = "state.safetensors"
	networkFile = "network.json"
	familyFile  = "family.safetensors"

	runFormat  = "anisoflight-run"
	runVersion = 1
)
