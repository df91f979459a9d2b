package api

// Operation describes what the server can do under one name, and by which ways it is reached.
type Operation struct {
	Name     string
	Sentence string
	Action   bool // DoAction: replies are JSON, or IPC streams where Rows
	Get      bool // DoGet with the name as "op"
	Exchange bool // DoExchange with the name as "op"
	Put      bool // DoPut with the name as "op"
	Rows     bool // it moves tensors and tables
	Reads    bool // it changes nothing that is stored
}

var operations = []Operation{
	{Name: "Sample", Sentence: "Draw images from a model.", Action: true, Get: true, Exchange: true, Rows: true, Reads: true},
	{Name: "EvaluateSchedule", Sentence: "Tabulate a schedule: g, its derivative and sigma by label, subspace and time.", Action: true, Get: true, Rows: true, Reads: true},
	{Name: "TrainStep", Sentence: "Take training steps of a run that is not running in the background.", Action: true, Get: true, Exchange: true, Rows: true},
	{Name: "WatchRun", Sentence: "Follow the rows of a run until it is done, cancelled or paused.", Get: true, Rows: true, Reads: true},
	{Name: "Denoise", Sentence: "Evaluate a model on noisy images: denoised image, flow and raw output.", Exchange: true, Rows: true, Reads: true},
	{Name: "ScheduleGradient", Sentence: "Estimate the gradient of the trajectory loss with respect to a schedule.", Exchange: true, Rows: true, Reads: true},
	{Name: "EvaluateModel", Sentence: "Measure a model's loss by noise level on a data set.", Action: true, Get: true, Rows: true, Reads: true},
	{Name: "Predict", Sentence: "Predict how much energy each basis, and schedules per class, can save at best.", Action: true, Get: true, Rows: true, Reads: true},
	{Name: "BenchSchedule", Sentence: "Run solvers on schedules on a data set's own Gaussian, in closed form: exact distances without a model.", Action: true, Get: true, Rows: true, Reads: true},
	{Name: "Dataset", Sentence: "Read a data set back.", Get: true, Rows: true, Reads: true},
	{Name: "Basis", Sentence: "Read the vectors of a basis back.", Action: true, Get: true, Rows: true, Reads: true},

	{Name: "PutDataset", Sentence: "Upload images and labels as a data set.", Put: true},
	{Name: "PutSchedule", Sentence: "Upload a table of (label, subspace, t, g) as a schedule.", Put: true},
	{Name: "PutBasis", Sentence: "Upload orthonormal vectors as a basis.", Put: true},

	{Name: "ServerInfo", Sentence: "Tell version, device, load and memory.", Action: true, Reads: true},
	{Name: "ListModels", Sentence: "List the models.", Action: true, Reads: true},
	{Name: "DescribeModel", Sentence: "Describe one model with its configuration.", Action: true, Reads: true},
	{Name: "LoadModel", Sentence: "Read a model folder and serve it under a name.", Action: true},
	{Name: "UnloadModel", Sentence: "Stop serving a model; its folder stays.", Action: true},
	{Name: "DeleteModel", Sentence: "Delete a model and its folder.", Action: true},
	{Name: "MakeModel", Sentence: "Make a Gaussian mixture with exact score, of given laws or of a data set's classes, and serve it as a model.", Action: true},
	{Name: "ListSchedules", Sentence: "List the schedules, those of models included.", Action: true, Reads: true},
	{Name: "MakeSchedule", Sentence: "Make a schedule: the geodesic of a model on a data set, a solver's noise levels on the data's Gaussian, its steps along a schedule, or by formula.", Action: true},
	{Name: "ExportSchedule", Sentence: "Give a schedule as its file: everything it holds, with its provenance.", Action: true, Reads: true},
	{Name: "ImportSchedule", Sentence: "Store a schedule file.", Action: true},
	{Name: "DeleteSchedule", Sentence: "Delete a stored schedule.", Action: true},
	{Name: "ListBases", Sentence: "List the stored bases.", Action: true, Reads: true},
	{Name: "MakeBasis", Sentence: "Make a basis from a data set: principal components of all images or of each class's, or the Haar wavelet's.", Action: true},
	{Name: "DeleteBasis", Sentence: "Delete a stored basis; schedules, runs and models keep their copies.", Action: true},
	{Name: "ListDatasets", Sentence: "List the data sets.", Action: true, Reads: true},
	{Name: "MakeDataset", Sentence: "Draw a data set from a mixture.", Action: true},
	{Name: "DeleteDataset", Sentence: "Delete a data set.", Action: true},
	{Name: "ListRuns", Sentence: "List the training runs.", Action: true, Reads: true},
	{Name: "GetRun", Sentence: "Describe one run with its configuration.", Action: true, Reads: true},
	{Name: "CreateRun", Sentence: "Create a training run.", Action: true},
	{Name: "StartRun", Sentence: "Train a run in the background.", Action: true},
	{Name: "PauseRun", Sentence: "Pause a run after its current step and store its state.", Action: true},
	{Name: "CancelRun", Sentence: "End a run after its current step and store its state.", Action: true},
	{Name: "DeleteRun", Sentence: "Delete a run and its state.", Action: true},
	{Name: "SaveModel", Sentence: "Write a run's averaged network and schedule as a model.", Action: true},
}

// Operations lists everything the server can do, in the order of the contract.
func Operations() []Operation { return append([]Operation(nil), operations...) }
